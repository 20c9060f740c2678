"""Tables of closed-loop points: lengths, users and tensor parallelism, and the latencies measured there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from servesim.check import ConfigError, Problem
from servesim.validate.measured import RATES, STATISTICS, THROUGHPUT, Figure
from servesim.validate.readers.content import Content, Row, read_content
from servesim.validate.readers.problems import Findings, as_number
from servesim.validate.readers.selection import chosen
from servesim.validate.readers.spelling import POINTS, UNITS, Column, named, plain
from servesim.words import listed

_MOST = {"concurrency": 1_000_000, "isl": 10**7, "osl": 10**7, "tp": 1024}
_LATENCY = re.compile(
    r"(?:(?:silicon|measured)_)?(?:(?P<before>mean|avg|median|p50|p90|p99)_)?"
    r"(?P<metric>ttft|tpot|itl|e2el?|latency)(?:_(?P<after>mean|avg|median|p50|p90|p99))?"
)
_THROUGHPUTS = {
    "output_tokens": (
        *("output_tok_s", "output_tokens_per_s", "output_tokens_per_second", "output_throughput"),
        *("output_token_throughput", "output_throughput_tok_s", "throughput", "tok_s"),
    ),
    "requests": ("request_throughput", "requests_per_s", "requests_per_second", "req_s"),
}
_STATISTICS = {"avg": "mean", "median": "p50", None: "mean"}


class Point(NamedTuple):
    """A row of such a table: ``concurrency`` users who send ``isl`` tokens and get ``osl``, on ``tp`` GPUs.

    ``measured`` has latencies in seconds and rates per second; what the row lacks is not in it. ``tp`` is
    None where the table does not say.
    """

    line: int
    concurrency: int
    isl: int
    osl: int
    tp: int | None
    measured: Mapping[Figure, float]


class Points(NamedTuple):
    """The points of a table, and what to know of its reading."""

    source: str
    points: Sequence[Point]
    notes: tuple[str, ...]

    @property
    def figures(self) -> list[Figure]:
        """Return what was measured at some point, in the order of the table."""
        return list(dict.fromkeys(figure for point in self.points for figure in point.measured))


def is_points(content: Content) -> bool:
    """Tell whether a table is one of closed-loop points: users, and something that was measured."""
    return "concurrency" in named(content.header, POINTS) and bool(_measurements(content.header))


def read_points(
    path: str | Path, where: Mapping[str, str] | None = None, isl: int | None = None, osl: int | None = None
) -> Points:
    """Return the points of a table.

    Args:
        path: a CSV, or JSON lines.
        where: values that columns must have for a row to be taken.
        isl: tokens of every prompt, where the table does not say.
        osl: tokens of every answer, where the table does not say.

    Raises:
        ConfigError: listing the lines that are wrong.
    """
    return points_of(read_content(Path(path)), where or {}, isl, osl)


def points_of(content: Content, where: Mapping[str, str], isl: int | None, osl: int | None) -> Points:
    """Return the points of what a file holds; see :func:`read_points`.

    Raises:
        ConfigError: listing what is wrong.
    """
    columns, given = named(content.header, POINTS), {"isl": isl, "osl": osl}
    _check_lengths(content, columns, given)
    rows, findings = chosen(content, where), Findings(content.source)
    settings: dict[str, list[Any]] = {
        name: (
            _settings(name, rows, columns[name], findings)
            if name in columns
            else [given.get(name)] * len(rows)
        )
        for name in POINTS
    }
    measured = [dict(_measured(row, content.header, findings)) for row in rows]
    findings.check()
    found = [
        Point(row.line, users, inputs, outputs, tp, each)
        for row, users, inputs, outputs, tp, each in zip(rows, *settings.values(), measured, strict=True)
        if each
    ]
    if not found:
        raise ConfigError([Problem(content.source, None, "no row has anything measured")])
    return Points(content.source, found, tuple(_notes(content, rows, measured)))


def _check_lengths(content: Content, columns: Mapping[str, Column], given: Mapping[str, int | None]) -> None:
    """Raise where lengths are said twice, or nowhere."""
    found = []
    for name, value in given.items():
        if name not in columns and value is None:
            message = f"{content.source} has no column of it: give the tokens of all"
            found.append(Problem(f"--{name}", None, message))
        if name in columns and value is not None:
            found.append(Problem(f"--{name}", value, f"{content.source} has it, as {columns[name].name}"))
    if found:
        raise ConfigError(found)


def _settings(name: str, rows: Sequence[Row], column: Column, findings: Findings) -> list[Any]:
    """Return whole numbers of a column; a blank ``tp`` is none."""
    values: list[Any] = []
    for row in rows:
        cell = row.cells.get(column.name)
        number = as_number(cell)
        if number is not None and 1 <= number <= _MOST[name] and number == int(number):
            values.append(int(number))
            continue
        values.append(None)
        if not (name == "tp" and number is None):
            message = f"must be a whole number, at least 1 and at most {_MOST[name]:,}"
            findings.add(f"line {row.line}, {column.name}", cell, message)
    return values


def _measured(row: Row, header: Sequence[str], findings: Findings) -> Iterator[tuple[Figure, float]]:
    for figure, column in _measurements(header).items():
        value = _number(row, column, findings)
        if value > 0:
            yield figure, value


def _number(row: Row, column: Column, findings: Findings) -> float:
    cells = [row.cells.get(column.name)]
    return float(findings.numbers(cells, lambda _: f"line {row.line}, {column.name}", column.seconds)[0])


def _measurements(header: Sequence[str]) -> dict[Figure, Column]:
    """Return the columns of what was measured, in the order of the table."""
    found: dict[Figure, Column] = {}
    for name in header:
        text, unit_s = plain(name)
        whole = f"{text}_s" if unit_s == UNITS["s"] else text
        for rate in RATES:
            if {text, whole} & set(_THROUGHPUTS[rate]):
                found.setdefault((THROUGHPUT, rate), Column(name, 1.0))
        if match := _LATENCY.fullmatch(text):
            said = match["before"] or match["after"]
            statistic = _STATISTICS.get(said, said)
            metric = "e2e" if match["metric"] in ("e2el", "latency") else match["metric"]
            if statistic in STATISTICS:
                found.setdefault((metric, statistic), Column(name, unit_s))
    return found


def _notes(
    content: Content, rows: Sequence[Row], measured: Sequence[Mapping[Figure, float]]
) -> Iterator[str]:
    if empty := sum(not each for each in measured):
        yield f"{empty:,} of {len(rows):,} rows have nothing measured: left out"
    for figure in _measurements(content.header):
        missing = sum(figure not in each for each in measured) - empty
        if missing:
            which = "rows with something measured" if empty else "rows"
            yield f"{missing:,} of {len(rows) - empty:,} {which} lack {'.'.join(figure)}"
    bare = [column.name for column in _measurements(content.header).values() if column.unit_s is None]
    if bare:
        yield f"{listed(bare, 'and')} taken as seconds, as no unit is named"
