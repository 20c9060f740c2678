"""The tables of a comparison's page."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

from servesim.report.content import Table
from servesim.report.validation.charts import bands
from servesim.screen.errors import share, signed_percent, title_of, told, verdict_words
from servesim.screen.replays import load_of, short_names
from servesim.screen.validation import SERIES
from servesim.validate.compare import Comparison
from servesim.validate.tolerance import Verdict


def figures_table(comparison: Comparison, title: str = "Figures", folded: bool = False) -> Table:
    """Return measured, simulated and error of every figure, and the distances of the distributions."""
    rows = []
    for figure, pair in comparison.figures.items():
        metric, statistic = figure
        distance, spread = comparison.ks.get(metric), comparison.per_request.get(metric)
        first = statistic == "mean"
        rows.append(
            [
                title_of(figure),
                *(told(figure, value) for value in pair),
                signed_percent(comparison.error(*figure)),
                f"{distance.ks:.3f}" if distance and first else "",
                f"{distance.measured_n:,}" if distance and first else "",
                share(spread.mdape) if spread and first else "",
            ]
        )
    return Table(
        title,
        ("", "measured", "simulated", "error", "KS", "n", "per request"),
        rows,
        "Error: simulated / measured - 1. KS: the largest difference of the two cumulative distributions, "
        "from 0 to 1. n: measured values. Per request: the median of the absolute errors of single requests.",
        folded=folded,
    )


def load_table(comparison: Comparison) -> Table:
    """Return the errors by load."""
    table = comparison.by_load()
    rows = []
    for band, row in zip(bands(table), table.to_dict("records"), strict=True):
        cells = []
        for metric in ("ttft", "tpot"):
            pair = (row[f"{metric}_measured"], row[f"{metric}_simulated"])
            cells += [
                *(told((metric, "mean"), value) for value in pair),
                signed_percent(row[f"{metric}_error"]),
            ]
        rows.append([band, f"{row['n']:,.0f}", *cells])
    headings = ("under way", "n", "TTFT (ms)", "simulated", "error", "TPOT (ms)", "simulated", "error")
    return Table(
        "Errors by load",
        headings,
        rows,
        "Means over the requests that found so many under way when they were sent, themselves included, in "
        "the measured run; the simulated means are of the same requests.",
        words=0,
    )


def series_table(comparisons: Sequence[Comparison]) -> Table:
    """Return the errors of several runs, one row each."""
    there = [figure for figure in SERIES if any(not isnan(each.error(*figure)) for each in comparisons)]
    rows = []
    for name, each in zip(short_names(comparisons), comparisons, strict=True):
        errors = (signed_percent(each.error(*figure)) for figure in there)
        rows.append([name, f"{each.measured.requests:,}", load_of(each), *errors])
    headings = ("run", "n", "sent", *(title_of(figure).partition(" (")[0] for figure in there))
    return Table("Errors of each run", headings, rows, "Error: simulated / measured - 1.")


def verdict_table(verdicts: Sequence[Verdict]) -> Table:
    """Return what became of the tolerances."""
    rows = [
        [each.source, each.name, *verdict_words(each), "met" if each.met else "MISSED"] for each in verdicts
    ]
    return Table("Tolerances", ("run", "figure", "came out at", "at most", ""), rows, words=2)
