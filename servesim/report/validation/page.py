"""The page of measured runs beside their replays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from servesim.report.content import Chart, Choice, Part, Section
from servesim.report.page import Page
from servesim.report.validation.charts import by_load, distributions, over_time
from servesim.report.validation.rates import rates
from servesim.report.validation.tables import figures_table, load_table, series_table, verdict_table
from servesim.screen.errors import unit_of
from servesim.screen.figures import counted
from servesim.screen.replays import assumed, capital, measured, notes, short_names, what
from servesim.validate.compare import Comparison
from servesim.validate.measured import METRICS
from servesim.validate.series import Knee
from servesim.validate.tolerance import Verdict

#: Runs whose requests are drawn one by one; of more, the figures of each stand in tables.
_MOST_DRAWN = 4

_OVER_TIME = "Points are requests; lines are medians of equally many requests each."


def runs_page(
    comparisons: Sequence[Comparison],
    scenario: Mapping[str, Any],
    knees: Sequence[Knee],
    verdicts: Sequence[Verdict],
) -> Page:
    """Return the page of one measured run, or of several side by side."""
    one = len(comparisons) == 1
    first: list[Part] = [verdict_table(verdicts)] if verdicts else []
    first += [figures_table(comparisons[0])] if one else [series_table(comparisons)]
    sections = [Section("Errors", first)]
    if not one:
        sections.append(Section("Rates", list(rates(comparisons, knees))))
    if len(comparisons) <= _MOST_DRAWN:
        sections += _details(comparisons)
    sections = [section for section in sections if section.parts]
    if not one:
        named = zip(short_names(comparisons), comparisons, strict=True)
        tables = [figures_table(each, name, folded=True) for name, each in named]
        sections.append(Section("Every figure", tables))
    return Page(_title(comparisons), list(_lead(comparisons, scenario)), sections, _notes(comparisons))


def _title(comparisons: Sequence[Comparison]) -> str:
    files = list(dict.fromkeys(each.measured.source.partition(" ")[0] for each in comparisons))
    others = f" and {counted(len(files) - 1, 'further file')}" if len(files) > 1 else ""
    return f"{files[0]}{others}: measured and simulated"


def _lead(comparisons: Sequence[Comparison], scenario: Mapping[str, Any]) -> Iterator[str]:
    yield f"Measured: {measured(comparisons)}."
    yield f"Simulated: {what(scenario)}; the same requests, sent at the same times or by as many users."
    if taken := assumed(scenario):
        yield f"{capital(taken)}."


def _notes(comparisons: Sequence[Comparison]) -> list[str]:
    found = [f"{note}." for note in notes(comparisons)]
    return [*found, "Times as a client sees them, defined as vllm bench serve defines them."]


def _details(comparisons: Sequence[Comparison]) -> Iterator[Section]:
    """Yield distributions, the course over time and errors by load, of each run that has requests."""
    named = dict(zip(short_names(comparisons), comparisons, strict=True))
    detailed = {name: each for name, each in named.items() if each.ks}
    yield Section("Distributions", list(_distributions(detailed)))
    timed = {
        name: each for name, each in detailed.items() if each.measured.sent_s[-1] > each.measured.sent_s[0]
    }
    yield Section(
        "Over time",
        [
            _one_or_each(f"{unit_of(metric).title} over time", found, _OVER_TIME)
            for metric in ("ttft", "tpot")
            if (found := {name: over_time(each, metric) for name, each in timed.items() if metric in each.ks})
        ],
    )
    loaded = {name: each for name, each in detailed.items() if len(each.by_load()) > 1}
    charts: list[Part] = [
        _one_or_each(f"{unit_of(metric).title} by load", found)
        for metric in ("ttft", "tpot")
        if (found := {name: by_load(each.by_load(), metric) for name, each in loaded.items()})
    ]
    tables: list[Part] = [load_table(each) for each in loaded.values()] if len(comparisons) == 1 else []
    yield Section("Load", [*charts, *tables])


def _distributions(comparisons: Mapping[str, Comparison]) -> Iterator[Chart | Choice]:
    """Yield the distributions of each latency; where there is no other beside the last, it is wide."""
    there = [metric for metric in METRICS if any(metric in each.ks for each in comparisons.values())]
    for metric in there:
        figures = {
            name: distributions(each, metric) for name, each in comparisons.items() if metric in each.ks
        }
        title = f"{unit_of(metric).title}, cumulative distribution"
        yield _one_or_each(title, figures, wide=metric == there[-1] and len(there) % 2 == 1)


def _one_or_each(
    title: str, figures: Mapping[str, go.Figure], caption: str = "", wide: bool = False
) -> Chart | Choice:
    """Return a chart, or one for each of several runs to choose from."""
    charts = [Chart(name, figure, caption) for name, figure in figures.items()]
    if len(charts) == 1:
        return Chart(title, charts[0].figure, caption, wide)
    return Choice(title, charts, wide)
