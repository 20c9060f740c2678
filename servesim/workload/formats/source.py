"""The file of a trace, opened: text or Parquet, packed with gzip or not, with a look at its first lines."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from servesim.workload.formats.faults import refuse

_PIECE = 1 << 20  # letters
_GZIP, _PARQUET = b"\x1f\x8b", b"PAR1"


class Source:
    """The text of a file, to be read once; some of its first lines may be seen before.

    Its line ends may be those of any system.
    """

    def __init__(self, path: Path, text: TextIO, is_parquet: bool = False) -> None:
        self.path, self.is_parquet = path, is_parquet
        self._text = text
        self._seen: list[str] = []

    @property
    def name(self) -> str:
        """Return the path as errors tell it."""
        return str(self.path)

    def first_letter(self) -> str:
        """Return the first letter that is not blank; empty where there is none. It stays to be read."""
        while not (seen := "".join(self._seen).lstrip()) and (piece := self._text.read(1)):
            self._seen.append(piece)
        return seen[:1]

    def first_lines(self, count: int) -> list[str]:
        """Return the first lines that are not blank, up to so many; they stay to be read."""
        begun = "".join(self._seen)
        if begun and not begun.endswith("\n"):
            begun += self._text.readline()
        self._seen = list(io.StringIO(begun, newline=""))
        while sum(map(bool, map(str.strip, self._seen))) < count and (line := self._text.readline()):
            self._seen.append(line)
        return list(islice(filter(str.strip, self._seen), count))

    def lines(self) -> Iterator[str]:
        """Return all lines, blank ones too, with their ends."""
        self.first_lines(0)
        return chain(self._seen, self._text)

    def pieces(self) -> Iterator[str]:
        """Yield the text in pieces of many letters."""
        yield from self._seen
        while piece := self._text.read(_PIECE):
            yield piece

    def first_pieces(self) -> Iterator[str]:
        """Yield the text in pieces, as far as they are asked for; they stay to be read."""
        self._seen = ["".join(self._seen)]
        yield from self._seen
        while piece := self._text.read(_PIECE):
            self._seen.append(piece)
            yield piece


@contextmanager
def opened(path: Path) -> Iterator[Source]:
    """Open a trace file, which is unpacked where it is packed with gzip.

    Raises ConfigError where it cannot be read, also while it is being read.
    """
    name = str(path)
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):  # such as /dev/zero, which never ends
            refuse(name, "is no regular file")
        with path.open("rb") as file:
            yield _source(path, file)
    except FileNotFoundError:
        refuse(name, "no such file")
    except (gzip.BadGzipFile, EOFError, zlib.error):
        refuse(name, "cannot be unpacked: it is no whole gzip file")
    except OSError as error:
        refuse(name, f"cannot be read: {error.strerror or error}")
    except UnicodeDecodeError:
        refuse(name, "is not text in UTF-8 (of packed files, only gzip's are unpacked)")
    except csv.Error as error:
        refuse(name, f"is not a CSV file: {error}")


def _source(path: Path, file: io.BufferedReader) -> Source:
    head = file.peek(len(_PARQUET))
    if head.startswith(_PARQUET):
        return Source(path, io.StringIO(), is_parquet=True)
    packed = head.startswith(_GZIP)
    plain = cast(BinaryIO, gzip.GzipFile(fileobj=file)) if packed else file
    return Source(path, io.TextIOWrapper(plain, encoding="utf-8-sig", newline=""))
