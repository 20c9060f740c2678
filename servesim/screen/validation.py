"""What is printed of measured runs beside simulated ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Any

import numpy as np
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from servesim.check import listed
from servesim.screen.console import print_lines
from servesim.screen.errors import share, signed_percent, title_of, told
from servesim.screen.figures import counted, number
from servesim.screen.hardware import cluster, gpus
from servesim.validate.compare import Comparison
from servesim.validate.measured import Measured
from servesim.validate.series import Knee
from servesim.validate.tolerance import Verdict

#: Errors that a row for one of several runs tells.
SERIES = (
    *(("ttft", "mean"), ("ttft", "p50"), ("ttft", "p99"), ("tpot", "mean"), ("tpot", "p99")),
    *(("e2e", "mean"), ("throughput", "output_tokens")),
)


def print_validation(
    scenario: Mapping[str, Any],
    comparisons: Sequence[Comparison],
    knee: Knee | None,
    verdicts: Sequence[Verdict],
    files: str,
    out: Console,
) -> None:
    """Print the comparison of one run, or one row for each of several.

    Args:
        scenario: the simulated configuration as plain values.
        comparisons: one for each run.
        knee: where the runs' TTFT passes a limit, if that was asked.
        verdicts: what became of the tolerances.
        files: where the page and the figures are.
        out: where to print.

    """
    parts: list[tuple[str, RenderableType | str]] = [
        ("Simulated", what(scenario)),
        ("Measured", measured(comparisons)),
    ]
    if len(comparisons) == 1:
        parts += [("Figures", _figures(comparisons[0])), ("Requests", _requests(comparisons[0]))]
        parts += [("By load", _by_load(comparisons[0]))]
    else:
        parts.append(("Errors", _series(comparisons)))
    parts += [("Knee", knee_line(knee))] if knee else []
    parts += endings(verdicts, list(notes(comparisons)), files)
    print_parts(parts, out)


def what(scenario: Mapping[str, Any]) -> str:
    """Tell what was simulated: model, hardware, scheduler."""
    hardware = listed((f"{count} x {gpu}" for gpu, count in gpus(scenario).items()), "and")
    kind = scenario["scheduler"]["kind"]
    return f"{scenario['model']['name']} on {hardware}: {cluster(scenario, None)}; scheduler {kind}"


def measured(comparisons: Sequence[Comparison]) -> str:
    """Tell what was measured: the one run, or what several of them have in common."""
    runs = [each.measured for each in comparisons]
    if len(runs) == 1:
        return how(runs[0])
    total = counted(sum(run.requests for run in runs), "request")
    return (
        f"{counted(len(runs), 'run')}, {total} ({listed(dict.fromkeys(run.format for run in runs), 'and')})"
    )


def short_names(comparisons: Sequence[Comparison]) -> list[str]:
    """Return what runs are called side by side: without the name of a file that all come from."""
    names = [each.measured.source for each in comparisons]
    files = {name.partition(" ")[0] for name in names}
    if len(names) > 1 and len(files) == 1 and all(" " in name for name in names):
        return [name.partition(" ")[2] for name in names]
    return names


def how(run: Measured) -> str:
    """Tell what was measured, and how its requests are replayed."""
    tokens = (number(float(each.mean())) for each in (run.input_tokens, run.output_tokens))
    means = "{} tokens in and {} out on average".format(*tokens)
    if run.closed_loop:
        sending = f"{run.max_concurrency:,} users, each the next when the last has ended"
    elif run.request_rate == inf:
        sending = "all at once"
    elif run.due_s is not None:
        sending = f"when they were due, at most {run.max_concurrency:,} under way"
    else:
        rate = run.offered_rps
        sending = "at their recorded times" + (f", {number(rate)}/s" if rate else "")
    return f"{run.source} ({run.format}): {counted(run.requests, 'request')}, {sending}; {means}"


def knee_line(knee: Knee) -> str:
    """Tell where p99 TTFT passes the limit."""
    places = [
        f"{word} at {number(rate)}/s" if rate is not None else f"{word} at none of the rates"
        for word, rate in (("measured", knee.measured_rps), ("simulated", knee.simulated_rps))
    ]
    error = "" if knee.error is None else f" ({signed_percent(knee.error)})"
    return f"p99 TTFT passes {knee.limit_s:g} s: {', '.join(places)}{error}"


def notes(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """Yield what to know when reading the figures; of several runs, whose it is unless it is of all."""
    found: dict[str, list[str]] = {}
    for name, each in zip(short_names(comparisons), comparisons, strict=True):
        for note in _notes(each):
            found.setdefault(note, []).append(name)
    for note, names in found.items():
        yield note if len(names) == len(comparisons) else f"{listed(names, 'and')}: {note}"


def _notes(comparison: Comparison) -> Iterator[str]:
    yield from comparison.measured.notes
    if backwards := int(np.count_nonzero(comparison.measured.e2e_s < comparison.measured.ttft_s)):
        yield f"{counted(backwards, 'request')} measured with an E2E below its TTFT"
    if comparison.measured.failed:
        yield f"{counted(comparison.measured.failed, 'request')} failed when measured: left out"
    if comparison.simulated.failed:
        lost = counted(comparison.simulated.failed, "request")
        yield f"{lost} did not complete when simulated: in none of its figures"


def verdict_line(verdict: Verdict) -> str:
    """Tell whether a tolerance was met."""
    word = "met" if verdict.met else "MISSED"
    size, limit = share(abs(verdict.value)), share(verdict.limit)
    return f"{word}: {verdict.name} {size}, at most {limit} ({verdict.source})"


def _figures(comparison: Comparison) -> Table:
    table = columns("", "measured", "simulated", "error", "KS", "n")
    for figure, (measured, simulated) in comparison.figures.items():
        metric, statistic = figure
        distance = comparison.ks.get(metric) if statistic == "mean" else None
        far = (f"{distance.ks:.3f}", f"{distance.measured_n:,}") if distance else ("", "")
        values = told(figure, measured), told(figure, simulated)
        table.add_row(title_of(figure), *values, signed_percent(comparison.error(*figure)), *far)
    return table


def _requests(comparison: Comparison) -> str:
    """Tell the errors of single requests."""
    if not comparison.per_request:
        return "the measured run has no single requests"
    said = (f"{metric.upper()} {share(spread.mdape)}" for metric, spread in comparison.per_request.items())
    return f"median absolute error of a request: {', '.join(said)}"


def _by_load(comparison: Comparison) -> Table | str:
    rows = comparison.by_load()
    if rows.empty:
        return "-"
    table = columns(
        "requests under way", "n", "TTFT (ms)", "simulated", "error", "TPOT (ms)", "simulated", "error"
    )
    for row in rows.to_dict("records"):
        band = f"{row['from']:.0f}" if row["from"] == row["to"] else f"{row['from']:.0f} to {row['to']:.0f}"
        cells = []
        for metric in ("ttft", "tpot"):
            pair = (row[f"{metric}_measured"], row[f"{metric}_simulated"])
            cells += [
                *(told((metric, "mean"), value) for value in pair),
                signed_percent(row[f"{metric}_error"]),
            ]
        table.add_row(band, f"{row['n']:,.0f}", *cells)
    return table


def _series(comparisons: Sequence[Comparison]) -> Table:
    """Return one row for each run, with its rate or its users."""
    there = [figure for figure in SERIES if any(figure in each.figures for each in comparisons)]
    titles = (title_of(figure).partition(" (")[0].replace(" ", "\n") for figure in there)
    table = columns("", "n", "sent", *titles)
    for name, each in zip(short_names(comparisons), comparisons, strict=True):
        errors = (signed_percent(each.error(*figure)) for figure in there)
        table.add_row(name, f"{each.measured.requests:,}", load_of(each.measured), *errors)
    return table


def load_of(run: Measured) -> str:
    """Return how densely requests were sent: so many a second, or by so many users."""
    return f"{run.max_concurrency:,} users" if run.closed_loop else f"{number(run.offered_rps)}/s"


def endings(
    verdicts: Sequence[Verdict], found: Sequence[str], files: str
) -> list[tuple[str, RenderableType | str]]:
    """Return what stands below the figures: what became of tolerances, notes, files."""
    judged = [("Tolerances", "\n".join(map(verdict_line, verdicts)))] if verdicts else []
    return [*judged, ("Notes", "\n".join(found) or "none"), ("Files", files)]


def columns(*headings: str) -> Table:
    """Return a table whose first column holds words, the others figures."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="", show_edge=False)
    for index, heading in enumerate(headings):
        table.add_column(heading, justify="right" if index else "left", no_wrap=True)
    return table


def print_parts(parts: Sequence[tuple[str, RenderableType | str]], out: Console) -> None:
    """Print headings, each with its content beside it."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column()
    for heading, content in parts:
        grid.add_row(heading, Text(content) if isinstance(content, str) else content)
    print_lines(out, grid)
