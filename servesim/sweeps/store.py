"""What has been run already: one line for each point, appended as the points end."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from servesim.sweeps.point import Outcome, as_line, of_line

#: The file in the folder of a sweep.
NAME = "points.log"


class Store:
    """The outcomes of a sweep by the hashes of their scenarios; in memory where there is no folder.

    Each is one line, a hash and a JSON object, that is written in one go when the point ends: whatever kills
    the process costs the points that are running. A line that was torn counts as absent.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._lines: dict[str, bytes] = {}
        self._outcomes: dict[str, Outcome] = {}
        self._file: int | None = None
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            self._path = folder / NAME
            self._open(self._path)

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            os.fsync(self._file)
            os.close(self._file)
            self._file = None

    def get(self, key: str) -> Outcome | None:
        """Return the outcome of a scenario by its hash; None where there is none yet."""
        line = self._lines.pop(key, None)
        if line is not None:
            with suppress(ValueError):
                self._outcomes[key] = of_line(line)
        return self._outcomes.get(key)

    def add(self, key: str, outcome: Outcome, lasting: bool = True) -> None:
        """Keep an outcome; on disk, too, where it is ``lasting``."""
        self._outcomes[key] = outcome
        if lasting and self._file is not None:
            self._write(self._file, f"{key} {as_line(outcome)}\n".encode())

    def _open(self, path: Path) -> None:
        said = path.read_bytes() if path.exists() else b""
        for line in said.split(b"\n"):
            key, _, rest = line.partition(b" ")
            if rest.endswith(b"}"):
                self._lines[key.decode("ascii", "replace")] = rest
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        if said and not said.endswith(b"\n"):
            self._write(self._file, b"\n")

    def _write(self, file: int, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(file, data) :]
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._path)) from error
