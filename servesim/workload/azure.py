"""The format of the Azure LLM inference traces: a CSV of times and lengths.

Source: https://github.com/Azure/AzurePublicDataset (AzureLLMInferenceDataset2023.md): columns ``TIMESTAMP``,
``ContextTokens`` and ``GeneratedTokens``, CRLF line ends, seven fractional digits. Times may also be plain
seconds; further columns are ignored.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from servesim.check import ConfigError, Problem, listed
from servesim.workload import cells
from servesim.workload.batch import BATCH_ROWS, IntArray

COLUMNS = TIME, INPUT, OUTPUT = "TIMESTAMP", "ContextTokens", "GeneratedTokens"
#: Bad values that an error lists one by one; the rest it counts.
MOST_LISTED = 20

EXAMPLE = "2023-11-16 18:15:46.6805900"

Row = tuple[int, list[str]]
"""The number of a line in the file, and its cells."""


class Recording(NamedTuple):
    """The rows of a trace in the order of the file: three columns of 64-bit whole numbers."""

    time_ns: IntArray
    input_tokens: IntArray
    output_tokens: IntArray


class Column(NamedTuple):
    """Where the cells of a column stand, how they are read, and the rule that they keep."""

    name: str
    place: int
    read: Callable[[Sequence[str]], IntArray]
    rule: str

    def accepts(self, cell: str) -> bool:
        """Return whether a cell keeps the rule."""
        try:
            self.read([cell])
        except ValueError:
            return False
        return True


def read(path: Path) -> Recording:
    """Read a trace, a chunk of rows at a time; only the numbers are kept (24 bytes a row).

    Raises ConfigError with every bad value and its line (the first 20 of them, then their number).
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = csv.reader(file, skipinitialspace=True)
            return _recording(((lines.line_num, row) for row in lines if row), path)
    except FileNotFoundError:
        raise _refusal(path, "no such file") from None
    except OSError as error:
        raise _refusal(path, f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise _refusal(path, "is not text in UTF-8 (unpack it first if it is compressed)") from None
    except csv.Error as error:
        raise _refusal(path, f"is not a CSV file: {error}") from None


def _refusal(path: Path, message: str) -> ConfigError:
    return ConfigError([Problem("path", str(path), message)])


def _recording(rows: Iterator[Row], path: Path) -> Recording:
    header = [name.strip() for _, line in islice(rows, 1) for name in line]
    _check_header(header, path)
    chunk = list(islice(rows, BATCH_ROWS))
    if not chunk:
        raise _refusal(path, "is an empty trace: no rows below its header")
    columns = _columns(header, chunk)
    parts: list[list[IntArray]] = []
    problems: list[Problem] = []
    unlisted = 0
    while chunk:
        try:
            parts.append(_numbers(chunk, columns, len(header)))
        except ValueError:
            found = list(_problems(chunk, columns, len(header)))
            room = MOST_LISTED - len(problems)
            problems += found[:room]
            unlisted += len(found[room:])
        chunk = list(islice(rows, BATCH_ROWS))
    if unlisted:
        problems.append(Problem("path", str(path), f"{unlisted:,} more values are wrong"))
    if problems:
        raise ConfigError(problems)
    return Recording(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _check_header(header: list[str], path: Path) -> None:
    if not header:
        raise _refusal(path, "is an empty file")
    absent = [name for name in COLUMNS if header.count(name) != 1]
    if absent:
        message = (
            f"must name the columns {listed(COLUMNS, 'and')} in its first line, once each; "
            f"{listed(absent, 'and')} {'is' if len(absent) == 1 else 'are'} not there once"
        )
        raise _refusal(path, message)


def _columns(header: list[str], chunk: list[Row]) -> tuple[Column, Column, Column]:
    """Return the three columns; the first rows decide whether times are timestamps or seconds."""
    at = header.index(TIME)
    clock = any(":" in row[at] for _, row in chunk if len(row) > at)
    time_rule = f"must be seconds from 0 to {cells.LATEST_S:,.0f}, or in every row like {EXAMPLE}"
    token_rule = f"must be a whole number from {{}} to {cells.MOST_TOKENS:,} (tokens)"
    return (
        Column(TIME, at, cells.timestamps if clock else cells.seconds, time_rule),
        Column(INPUT, header.index(INPUT), partial(cells.tokens, at_least=1), token_rule.format(1)),
        Column(OUTPUT, header.index(OUTPUT), partial(cells.tokens, at_least=0), token_rule.format(0)),
    )


def _numbers(chunk: list[Row], columns: tuple[Column, ...], width: int) -> list[IntArray]:
    """Return the numbers of a chunk, column by column; ValueError where a row or cell is wrong."""
    table = list(zip(*(row for _, row in chunk), strict=True))
    if len(table) != width:
        raise ValueError
    return [column.read(table[column.place]) for column in columns]


def _problems(chunk: list[Row], columns: tuple[Column, ...], width: int) -> Iterator[Problem]:
    for line, row in chunk:
        if len(row) != width:
            yield Problem(f"path, line {line}", ",".join(row), f"must have {width} cells, as the header has")
            continue
        for column in columns:
            if not column.accepts(row[column.place]):
                yield Problem(f"path, line {line}, {column.name}", row[column.place], column.rule)
