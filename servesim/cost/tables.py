"""Tables of step times by count: they grow on demand, and what one run has tabulated, the next reads.

On disk they lie in the user's cache folder (or the one that the environment variable ``SERVESIM_CACHE_DIR``
names; none where it is empty) under the hash of all that decides them: their inputs, the source code of this
package, and the machine with its NumPy, whose last digits may differ from another's. They are read as they
were written, to the bit, so results do not depend on whether there is a cache. A folder that cannot be
written, or a file that is not what was written, is passed over.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import numpy as np

from servesim.cost.step_time import FloatArray

FOLDER = "SERVESIM_CACHE_DIR"

#: Files beyond this number go, those first that were written first; most are of a quarter of a megabyte.
MOST_FILES = 256

_DIGEST = 32


def extend(table: list[Any], last: int, values: Callable[[FloatArray], list[Any]]) -> None:
    """Let a table by count reach ``last``, with the values of these counts; it at least doubles."""
    known = len(table)
    if last >= known:
        table += values(np.arange(known, max(last + 1, 2 * known), dtype=np.float64))


def name_of(*inputs: object) -> str:
    """Return the name of the tables that follow from inputs, whose ``repr`` says all that they are."""
    told = repr((inputs, _code(), np.__version__, platform.machine(), platform.node()))
    return blake2b(told.encode(), digest_size=16).hexdigest()


def read(name: str) -> list[FloatArray] | None:
    """Return the arrays written under a name, flat; None where there are none."""
    folder = cache_folder()
    if folder is None:
        return None
    try:
        file = (folder / name).read_bytes()
    except OSError:
        return None
    digest, said = file[:_DIGEST], file[_DIGEST:]
    if blake2b(said, digest_size=_DIGEST).digest() != digest:
        return None
    count = int(np.frombuffer(said, dtype="<i8", count=1)[0])
    lengths = np.frombuffer(said, dtype="<i8", count=1 + count)[1:]
    numbers = np.frombuffer(said, dtype="<f8", offset=8 * (1 + count))
    return np.split(numbers, np.cumsum(lengths)[:-1])


def write(name: str, arrays: Sequence[FloatArray]) -> None:
    """Write arrays under a name, at once or not at all, and let the oldest files beyond the most go."""
    folder = cache_folder()
    if folder is None:
        return
    lengths = np.array([len(arrays), *(each.size for each in arrays)], dtype="<i8")
    said = lengths.tobytes() + b"".join(each.astype("<f8").tobytes() for each in arrays)
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        _replace(folder / name, blake2b(said, digest_size=_DIGEST).digest() + said)
        _prune(folder)


def cache_folder() -> Path | None:
    """Return the folder of compiled step times; None where they are not kept."""
    told = os.environ.get(FOLDER)
    if told is not None:
        return Path(told) if told else None
    with suppress(RuntimeError):  # there may be no home
        return _user_cache() / "servesim"
    return None


def _user_cache() -> Path:
    """Return where programs keep what they can make again, by the customs of the platform."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    if sys.platform == "win32":
        variable, usual = "LOCALAPPDATA", "AppData/Local"
    else:
        variable, usual = "XDG_CACHE_HOME", ".cache"
    told = os.environ.get(variable)
    return Path(told) if told else Path.home() / usual


def _replace(path: Path, said: bytes) -> None:
    """Write a file beside its place and move it there, so that nobody reads half of it."""
    with NamedTemporaryFile(dir=path.parent, delete=False) as file:
        beside = Path(file.name)
        try:
            file.write(said)
            file.close()
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)


def _prune(folder: Path) -> None:
    files = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    for path in files[:-MOST_FILES]:
        path.unlink(missing_ok=True)


@cache
def _code() -> str:
    """Return the hash of the modules that tables are computed by."""
    digest = blake2b(digest_size=16)
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
