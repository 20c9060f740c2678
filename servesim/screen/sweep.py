"""What is printed of a sweep: how it went, and one row for each configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isnan
from typing import Any, NamedTuple

from rich.console import Console
from rich.text import Text

from servesim.screen.comparison import table_lines
from servesim.screen.figures import counted, number

#: Rows that fit on a screen; the rest is in the table on disk.
MOST_ROWS = 40
#: Errors that are printed in full.
_MOST_ERRORS = 3


class Column(NamedTuple):
    """A column of the screen: its heading, and the figure of each row as mean, low and high."""

    heading: str
    figures: Sequence[tuple[float, float, float]]


def print_sweep(
    labels: Mapping[str, Sequence[Any]], columns: Sequence[Column], notes: Sequence[str], out: Console
) -> None:
    """Print what sets the rows apart and their figures, each with half the width of its interval, then notes.

    Args:
        labels: the values of each setting, one per row.
        columns: the figures.
        notes: lines below the table.
        out: where to print.

    """
    headings = [*labels, *(column.heading for column in columns)]
    cells = [*([_typed(value) for value in values] for values in labels.values())]
    cells += [[_figure(*figure) for figure in column.figures] for column in columns]
    rows = list(zip(*cells, strict=True))
    shown = rows[:MOST_ROWS]
    lines = [*table_lines([headings, *shown], range(len(labels)), out.width)]
    if len(rows) > MOST_ROWS:
        lines.append(f"... and {len(rows) - MOST_ROWS} more")
    out.print(Text("\n".join(line.rstrip() for line in (*lines, "", *notes))), soft_wrap=True)


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
    return number(mean) if isnan(low) else f"{number(mean)} ±{number((high - low) / 2)}"


def _typed(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)
