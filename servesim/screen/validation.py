"""What is printed of measured runs beside simulated ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isnan
from typing import Any

from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from servesim.screen.console import print_lines
from servesim.screen.errors import share, signed_percent, title_of, told, verdict_words
from servesim.screen.replays import assumed, knee_line, load_of, measured, notes, short_names, what
from servesim.validate.compare import Comparison
from servesim.validate.measured import Figure
from servesim.validate.series import Knee
from servesim.validate.tolerance import Verdict

#: Errors that a row for one of several runs tells; where there is room for fewer, the last ones go first.
SERIES = (
    *(("ttft", "mean"), ("ttft", "p50"), ("ttft", "p99"), ("tpot", "mean"), ("tpot", "p99")),
    *(("e2e", "mean"), ("throughput", "output_tokens")),
)
_DISPENSABLE = (("ttft", "p50"), ("e2e", "mean"), ("tpot", "p99"), ("throughput", "output_tokens"))

#: Something to print: the widest of several tables that fits, the narrowest where none does.
Content = RenderableType | str | Sequence[Table]


def print_validation(
    scenario: Mapping[str, Any],
    comparisons: Sequence[Comparison],
    knees: Sequence[Knee],
    verdicts: Sequence[Verdict],
    files: str,
    out: Console,
) -> None:
    """Print the comparison of one run, or one row for each of several.

    Args:
        scenario: the simulated configuration as plain values.
        comparisons: one for each run.
        knees: where the runs' TTFT passes a limit, if that was asked, of each series of rates.
        verdicts: what became of the tolerances.
        files: where the page and the figures are.
        out: where to print.

    """
    parts: list[tuple[str, Content]] = [*server(scenario), ("Measured", measured(comparisons))]
    if len(comparisons) == 1:
        parts += [("Figures", _figures(comparisons[0])), ("Requests", _requests(comparisons[0]))]
        parts += [("By load", _by_load(comparisons[0]))]
    else:
        parts.append(("Errors", _series(comparisons)))
    parts += [("Knee", "\n".join(map(knee_line, knees)))] if knees else []
    names = dict(zip((each.measured.source for each in comparisons), short_names(comparisons), strict=True))
    shown = [each._replace(source=names.get(each.source, each.source)) for each in verdicts]
    parts += endings(shown, list(notes(comparisons)), files)
    print_parts(parts, out)


def server(scenario: Mapping[str, Any], told: str = "") -> Iterator[tuple[str, str]]:
    """Yield what was simulated, ``told`` in other words if given, and what nobody has said of it."""
    yield "Simulated", told or what(scenario)
    if taken := assumed(scenario):
        yield "Assumed", taken


def verdict_line(verdict: Verdict) -> str:
    """Tell whether a tolerance was met."""
    word = "met" if verdict.met else "MISSED"
    size, limit = verdict_words(verdict)
    return f"{word}: {verdict.name} {size}, at most {limit} ({verdict.source})"


def _figures(comparison: Comparison) -> list[Table]:
    headings = ("", "measured", "simulated", "error", "KS", "n")
    rows = []
    for figure, (value, simulated) in comparison.figures.items():
        metric, statistic = figure
        distance = comparison.ks.get(metric) if statistic == "mean" else None
        far = (f"{distance.ks:.3f}", f"{distance.measured_n:,}") if distance else ("", "")
        values = told(figure, value), told(figure, simulated)
        rows.append([title_of(figure), *values, signed_percent(comparison.error(*figure)), *far])
    return narrowing(headings, rows, [5, 4])


def _requests(comparison: Comparison) -> str:
    """Tell the errors of single requests."""
    if not comparison.per_request:
        return "the measured run has no single requests"
    said = (f"{metric.upper()} {share(spread.mdape)}" for metric, spread in comparison.per_request.items())
    return f"median absolute error of a request: {', '.join(said)}"


def _by_load(comparison: Comparison) -> list[Table] | str:
    rows = comparison.by_load()
    if rows.empty:
        return "-"
    cells = []
    for row in rows.to_dict("records"):
        band = f"{row['from']:.0f}" if row["from"] == row["to"] else f"{row['from']:.0f} to {row['to']:.0f}"
        cells.append([band, f"{row['n']:,.0f}"])
        for metric in ("ttft", "tpot"):
            pair = (row[f"{metric}_measured"], row[f"{metric}_simulated"])
            cells[-1] += [*(told((metric, "mean"), value) for value in pair)]
            cells[-1] += [signed_percent(row[f"{metric}_error"])]
    each = [[f"{name}\n(ms)", "simu-\nlated", "error"] for name in ("TTFT", "TPOT")]
    return narrowing(("requests\nunder way", "n", *each[0], *each[1]), cells, [1])


def _series(comparisons: Sequence[Comparison]) -> list[Table]:
    """Return one row for each run, with its rate or its users."""
    there = [figure for figure in SERIES if any(not isnan(each.error(*figure)) for each in comparisons)]
    titles = [_stacked(figure) for figure in there]
    rows = []
    for name, each in zip(short_names(comparisons), comparisons, strict=True):
        errors = (signed_percent(each.error(*figure)) for figure in there)
        rows.append([name, f"{each.measured.requests:,}", load_of(each), *errors])
    dispensable = [3 + there.index(figure) for figure in _DISPENSABLE if figure in there]
    return narrowing(("", "n", "sent", *titles), rows, [*dispensable[:2], 1, *dispensable[2:]])


def _stacked(figure: Figure) -> str:
    return title_of(figure).partition(" (")[0].replace(" ", "\n")


def endings(verdicts: Sequence[Verdict], found: Sequence[str], files: str) -> list[tuple[str, Content]]:
    """Return what stands below the figures: what became of tolerances, notes, files."""
    judged = [("Tolerances", "\n".join(map(verdict_line, verdicts)))] if verdicts else []
    return [*judged, ("Notes", "\n".join(found) or "none"), ("Files", files)]


def columns(*headings: str, gap: int = 2) -> Table:
    """Return a table whose first column holds words, the others figures."""
    table = Table(box=None, padding=(0, gap, 0, 0), header_style="", show_edge=False)
    for index, heading in enumerate(headings):
        table.add_column(heading, justify="right" if index else "left", no_wrap=index > 0)
    return table


def narrowing(
    headings: Sequence[str], rows: Sequence[Sequence[str]], dispensable: Sequence[int] = ()
) -> list[Table]:
    """Return a table in ever fewer columns: first with narrow gaps, then without the dispensable ones."""
    found = []
    for dropped, gap in ((0, 2), *((count, 1) for count in range(len(dispensable) + 1))):
        kept = [index for index in range(len(headings)) if index not in dispensable[:dropped]]
        table = columns(*(headings[index] for index in kept), gap=gap)
        for row in rows:
            table.add_row(*(row[index] for index in kept))
        found.append(table)
    return found


def print_parts(parts: Sequence[tuple[str, Content]], out: Console) -> None:
    """Print headings, each with its content beside it; of tables, the widest that can be read whole."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column()
    room = out.width - max(len(heading) for heading, _ in parts) - 2
    for heading, content in parts:
        grid.add_row(heading, _fitting(content, room, out))
    print_lines(out, grid)


def _fitting(content: Content, room: int, out: Console) -> RenderableType:
    if isinstance(content, str):
        return Text(content)
    if not isinstance(content, Sequence):
        return content
    options = out.options.update(width=1_000)
    fits = (table for table in content if Measurement.get(out, options, table).minimum <= room)
    return next(fits, content[-1])
