"""What is printed of a sweep: how it went, and one row for each configuration."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from math import isnan
from typing import Any, NamedTuple

from rich.console import Console
from rich.text import Text

from servesim.screen.comparison import table_lines
from servesim.screen.figures import counted, number, signed

#: Rows that fit on a screen; the rest is in the table on disk.
MOST_ROWS = 40
#: Errors that are printed in full.
_MOST_ERRORS = 3
#: Characters of a part of a figure's name, unless it has no place to be split.
_WIDEST = 12


class Column(NamedTuple):
    """A column of the screen: its heading, and the figure of each row as mean, low and high."""

    heading: str
    figures: Sequence[tuple[float, float, float]]


class Rows(NamedTuple):
    """What sets rows apart, the values of each setting, and their figures; ``signed``: differences."""

    labels: Mapping[str, Sequence[Any]]
    columns: Sequence[Column]
    signed: bool = False


def print_sweep(
    rows: Rows, notes: Sequence[str], differences: Rows, ends: Sequence[str], out: Console
) -> None:
    """Print a table of figures, each with half the width of its interval, and one of differences.

    Args:
        rows: the figures.
        notes: lines below them.
        differences: from a baseline; those that are all 0 are counted only.
        ends: the last lines.
        out: where to print.

    """
    lines = [*_table(rows, out.width), "", *notes, "", *_differences(differences, out.width), *ends]
    out.print(Text("\n".join(line.rstrip() for line in lines)), soft_wrap=True)


def _differences(rows: Rows, width: int) -> Iterator[str]:
    """Yield the rows of which a figure differs, and how many do not."""
    lines = list(zip(*(column.figures for column in rows.columns), strict=True))
    apart = [any(_differs(*figure) for figure in line) for line in lines]
    if any(apart):
        labels = {name: [*compress(values, apart)] for name, values in rows.labels.items()}
        columns = [Column(name, [*compress(figures, apart)]) for name, figures in rows.columns]
        yield from _table(Rows(labels, columns, rows.signed), width)
    if same := apart.count(False):
        yield f"No difference at all in {counted(same, 'row')}{' more' if any(apart) else ''}"
    if apart:
        yield ""


def _table(rows: Rows, width: int) -> Iterator[str]:
    """Yield the lines of a table, names of figures above each other in parts."""
    names = [_parts(column.heading) for column in rows.columns]
    height = max(map(len, names), default=1)
    headings = [*([""] * (height - 1) + [name] for name in rows.labels)]
    headings += [[""] * (height - len(parts)) + parts for parts in names]
    cells = [*([_typed(value) for value in values] for values in rows.labels.values())]
    tell = _change if rows.signed else _figure
    cells += [[tell(*figure) for figure in column.figures] for column in rows.columns]
    told = list(zip(*cells, strict=True))
    table = [*zip(*headings, strict=True), *told[:MOST_ROWS]]
    yield from table_lines(table, range(len(rows.labels)), width)
    if len(told) > MOST_ROWS:
        yield f"... and {len(told) - MOST_ROWS} more"


def _parts(name: str) -> list[str]:
    """Return the name of a figure in short parts that end in its dots and underscores."""
    parts = [""]
    for piece in re.findall(r"[^._]*[._]?", name):
        if parts[-1] and len(parts[-1] + piece) > _WIDEST:
            parts.append("")
        parts[-1] += piece
    return parts


def counts(status: Sequence[str], known: int) -> str:
    """Return how many points there are, what became of them, and how many were ``known`` from before."""
    kinds = {"clean": "clean", "not_clean": "not clean", "failed": "failed"}
    parts = [f"{status.count(kind):,} {words}" for kind, words in kinds.items() if kind in status]
    before = f"; {'all' if known == len(status) else f'{known:,}'} known from before" if known else ""
    return f"{counted(len(status), 'point')}: {', '.join(parts)}{before}"


def error_lines(errors: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield each error, and the first of the points that ``errors`` says have it; three errors at most."""
    for index, (error, points) in enumerate(errors.items()):
        if index == _MOST_ERRORS:
            yield f"... and {counted(len(errors) - _MOST_ERRORS, 'further error')}, in the column `error`"
            return
        more = f" and {len(points) - 1:,} more" if len(points) > 1 else ""
        yield f"failed: {points[0]}{more}"
        yield from (f"  {line}" for line in error.splitlines())


def _figure(mean: float, low: float, high: float) -> str:
    if isnan(mean):
        return "-"
    exact = isnan(low) or low == high
    return number(mean) if exact else f"{number(mean)} ±{number((high - low) / 2)}"


def _differs(mean: float, low: float, high: float) -> bool:
    return not isnan(mean) and (mean != 0.0 or (not isnan(low) and (low, high) != (0.0, 0.0)))


def _change(mean: float, low: float, high: float) -> str:
    """Return a difference with its sign; none where there is nothing to tell apart."""
    if isnan(mean):
        return "-"
    if not _differs(mean, low, high):
        return "0"
    return signed(mean) if isnan(low) else f"{signed(mean)} ±{number((high - low) / 2)}"


def _typed(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)
