"""Which measured runs a fit is judged by: those whose settings or columns have given values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from servesim.check import ConfigError, Problem
from servesim.validate.measured import Measured
from servesim.validate.points import Point, Points
from servesim.validate.readers.content import Content
from servesim.validate.readers.selection import meaning_of, same
from servesim.validate.readers.spelling import POINTS, REQUESTS
from servesim.words import listed


def held_out_lines(points: Points, conditions: Mapping[str, str], content: Content | None = None) -> set[int]:
    """Return the lines of the points that have these values: of users, lengths, ``tp``, or of any column.

    Raises:
        ConfigError: listing the names of nothing that the table has.
    """
    header = content.header if content else ()
    cells = {row.line: row.cells for row in content.rows} if content else {}
    names = {name: meaning_of(name, POINTS) for name in conditions}
    odd = [name for name, meaning in names.items() if meaning is None and name not in header]
    if odd:
        message = f"points are told apart by {listed(dict.fromkeys((*POINTS, *header)), 'and')}"
        raise ConfigError([Problem("--held-out", name, message) for name in odd])

    def value(point: Point, name: str) -> object:
        meaning = names[name]
        return cells[point.line].get(name) if meaning is None else getattr(point, meaning)

    return {
        point.line
        for point in points.points
        if conditions and all(same(value(point, name), wanted) for name, wanted in conditions.items())
    }


def held_out_runs(measured: Sequence[Measured], conditions: Mapping[str, str]) -> list[bool]:
    """Tell of each run whether its columns of ``--by`` have all these values; of none without conditions.

    Raises:
        ConfigError: listing the names that are none of these columns.
    """
    columns = list(dict.fromkeys(name for each in measured for name in each.labels))
    names = {name: _column(name, columns) for name in conditions}
    if odd := [name for name, column in names.items() if column is None]:
        message = (
            f"runs are told apart by the columns of --by: {listed(columns, 'and') if columns else 'none'}"
        )
        raise ConfigError([Problem("--held-out", name, message) for name in odd])
    pairs = [(str(names[name]), value) for name, value in conditions.items()]
    return [bool(pairs) and all(same(each.labels.get(n), v) for n, v in pairs) for each in measured]


def _column(name: str, columns: Sequence[str]) -> str | None:
    """Return the column of a name, or of another spelling of what it holds; None without one."""
    if name in columns:
        return name
    for spellings in (POINTS, REQUESTS):
        if meaning := meaning_of(name, spellings):
            return next((each for each in columns if meaning_of(each, spellings) == meaning), None)
    return None
