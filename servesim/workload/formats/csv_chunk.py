"""Rows of a CSV file, some at a time, with the lines that they stand in."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import islice

from servesim.check import Problem
from servesim.workload.batch import BATCH_ROWS
from servesim.workload.formats.field import Field


class CsvChunk:
    """Rows of cells that begin at a line of the file; empty ones are no rows, but count as lines."""

    def __init__(self, header: Sequence[str], first_line: int, rows: list[list[str]]) -> None:
        self._header, self._first_line, self._rows = header, first_line, rows
        self._table: dict[str, Sequence[str]] | None = None

    def __bool__(self) -> bool:
        return any(self._rows)

    def leave_out(self, name: str, words: frozenset[str]) -> int:
        """Leave out the rows that have one of these words in a column; return how many."""
        place, width = self._header.index(name), len(self._header)
        kept = [[] if len(row) == width and row[place] in words else row for row in self._rows]
        count = sum(map(bool, self._rows)) - sum(map(bool, kept))
        self._rows = kept
        return count

    def any_with(self, name: str, letter: str) -> bool:
        """Tell whether a cell of a column has a letter."""
        place = self._header.index(name)
        return any(letter in row[place] for row in self._rows if len(row) > place)

    def column(self, field: Field) -> Sequence[str]:
        """Return the cells of a column; ValueError where a row is not as wide as the header."""
        if self._table is None:
            columns = list(zip(*filter(None, self._rows), strict=True))
            self._table = dict(zip(self._header, columns, strict=True))
        return self._table[field.name]

    def problems(self, fields: Sequence[Field]) -> Iterator[Problem]:
        """Yield what is wrong, with the number of the line in which each wrong row ends."""
        line, width = self._first_line - 1, len(self._header)
        places = [self._header.index(field.name) for field in fields]
        for row in self._rows:
            line += 1 + sum(map(_breaks, row))
            if not row:
                continue
            if len(row) != width:
                message = f"must have {width} cells, as the header has"
                yield Problem(f"path, line {line}", ",".join(row), message)
                continue
            for field, place in zip(fields, places, strict=True):
                if not field.accepts(row[place]):
                    yield Problem(f"path, line {line}, {field.name}", row[place], field.rule)


def csv_chunks(lines: Iterator[str]) -> tuple[list[str], Iterator[CsvChunk]]:
    """Return the names of the header, none where there is no line, and the rows below it in chunks."""
    reader = csv.reader(lines, skipinitialspace=True)
    names = [name.strip() for name in next(filter(None, reader), [])]

    def chunks() -> Iterator[CsvChunk]:
        first_line = reader.line_num + 1
        while rows := list(islice(reader, BATCH_ROWS)):
            if any(rows):
                yield CsvChunk(names, first_line, rows)
            first_line = reader.line_num + 1

    return names, chunks()


def _breaks(cell: str) -> int:
    """Return the line breaks inside a cell."""
    return cell.count("\n") + cell.count("\r") - cell.count("\r\n")
