"""Tables of step times by count: they grow on demand, and what one run has tabulated, the next reads.

On disk they lie in the user's cache folder (or the one that the environment variable ``SERVESIM_CACHE_DIR``
names; none where it is empty) under the hash of all that decides them: their inputs, the source code of this
package, and the machine with its NumPy, whose last digits may differ from another's. They are read as they
were written, to the bit, so results do not depend on whether there is a cache. A folder that cannot be
written, or a file that is not what was written, is passed over. What else lies in the folder is left alone.
"""

from __future__ import annotations

import os
import platform
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from servesim.cost.step_time import FloatArray
from servesim.files import in_one_go

FOLDER = "SERVESIM_CACHE_DIR"

#: What the names of files of tables end with, half written ones too: no other file is ever removed.
SUFFIX = ".step_times"

#: Files beyond this number or these bytes together go, those first that were written first; most are of a
#: quarter of a megabyte.
MOST_FILES = 256
MOST_BYTES = 256 * 2**20

#: A file larger than this is not written: it would push out many others that are as dear to make.
LARGEST_BYTES = 16 * 2**20

_DIGEST = 32
_WORD = 8  # bytes of a count or a number


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
        file = _path(folder, name).read_bytes()
    except OSError:
        return None
    digest, said = file[:_DIGEST], file[_DIGEST:]
    if blake2b(said, digest_size=_DIGEST).digest() != digest:
        return None
    return _arrays(said)


def write(name: str, arrays: Sequence[FloatArray]) -> None:
    """Write arrays under a name, at once or not at all, and let the oldest files beyond the most go."""
    folder = cache_folder()
    if folder is None:
        return
    lengths = np.array([len(arrays), *(each.size for each in arrays)], dtype="<i8")
    said = lengths.tobytes() + b"".join(each.astype("<f8").tobytes() for each in arrays)
    if len(said) > LARGEST_BYTES:
        return
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        with in_one_go(_path(folder, name)) as beside:
            beside.write_bytes(blake2b(said, digest_size=_DIGEST).digest() + said)
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


def _path(folder: Path, name: str) -> Path:
    return folder / f"{name}{SUFFIX}"


def _arrays(said: bytes) -> list[FloatArray] | None:
    """Return the arrays of a file: their number, their lengths, their values; None where these disagree."""
    if not said or len(said) % _WORD:
        return None
    words = np.frombuffer(said, dtype="<i8")
    count = int(words[0])
    lengths = words[1 : 1 + count]
    if not 0 < count < words.size or lengths.min() < 0 or int(lengths.sum()) != words.size - 1 - count:
        return None
    return np.split(words[1 + count :].view("<f8"), np.cumsum(lengths)[:-1])


def _prune(folder: Path) -> None:
    """Let the oldest files of tables go until neither their number nor their size is too large."""
    kept = size = 0
    for path, about in sorted(_own(folder), key=lambda file: file[1].st_mtime_ns, reverse=True):
        kept, size = kept + 1, size + about.st_size
        if kept > MOST_FILES or size > MOST_BYTES:
            with suppress(OSError):
                path.unlink()


def _own(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the files of tables in a folder, each with its size and age; another run may remove some."""
    for path in folder.glob(f"*{SUFFIX}"):
        with suppress(OSError):
            about = path.lstat()
            if stat.S_ISREG(about.st_mode):
                yield path, about


@cache
def _code() -> str:
    """Return the hash of the modules that tables are computed by."""
    digest = blake2b(digest_size=16)
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
