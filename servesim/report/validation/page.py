"""The page of measured runs beside their replays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from servesim.report.page import Chart, Choice, Page, Part, Section
from servesim.report.theme import blank
from servesim.report.validation.charts import SIDES, axis_over, by_load, distributions, level, over_time
from servesim.report.validation.tables import figures_table, load_table, series_table, verdict_table
from servesim.screen.errors import unit_of
from servesim.screen.figures import counted
from servesim.screen.validation import knee_line, measured, notes, short_names, what
from servesim.validate.compare import Comparison
from servesim.validate.measured import METRICS
from servesim.validate.series import TAIL, Knee
from servesim.validate.tolerance import Verdict

_OVER_TIME = "Points are requests; lines are medians of equally many requests each."


def runs_page(
    comparisons: Sequence[Comparison],
    scenario: Mapping[str, Any],
    knee: Knee | None,
    verdicts: Sequence[Verdict],
) -> Page:
    """Return the page of one measured run, or of several side by side."""
    one = len(comparisons) == 1
    first: list[Part] = [verdict_table(verdicts)] if verdicts else []
    first += [figures_table(comparisons[0])] if one else [series_table(comparisons)]
    sections = [Section("Errors", first)]
    if not one:
        sections.append(Section("Rates", list(_rates(comparisons, knee))))
    sections += [section for section in _details(comparisons) if section.parts]
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


def _rates(comparisons: Sequence[Comparison], knee: Knee | None) -> Iterator[Chart]:
    """Yield tails and throughput against the rate of several runs."""
    rated = sorted(
        (
            each
            for each in comparisons
            if each.measured.offered_rps is not None and not each.measured.closed_loop
        ),
        key=lambda each: each.measured.offered_rps or 0.0,
    )
    for title, figure in (
        ("p99 TTFT", TAIL),
        ("Median TTFT", ("ttft", "p50")),
        ("Mean TPOT", ("tpot", "mean")),
        ("Output throughput", ("throughput", "output_tokens")),
    ):
        known = [each for each in rated if figure in each.figures]
        if len(known) > 1:
            limit_s = knee.limit_s if knee and figure == TAIL else None
            caption = f"{knee_line(knee)}." if knee and figure == TAIL else ""
            yield Chart(f"{title} against the rate", _against_rate(known, figure, limit_s), caption)


def _against_rate(
    comparisons: Sequence[Comparison], figure: tuple[str, str], limit_s: float | None
) -> go.Figure:
    unit = unit_of(*figure)
    rates = [each.measured.offered_rps or 0.0 for each in comparisons]
    values = unit.scale * np.array([each.figures[figure] for each in comparisons])
    shown = np.append(values.ravel(), [] if limit_s is None else [unit.scale * limit_s])
    drawn = blank(
        x="Requests per second",
        y=f"{unit.title} ({unit.unit})",
        xaxis={"rangemode": "tozero"},
        yaxis=axis_over(shown),
    )
    for side, (name, hue, dash) in enumerate(SIDES):
        drawn.add_scatter(
            x=rates,
            y=values[:, side],
            mode="lines+markers",
            name=name,
            line={"color": hue, "width": 2.5, "dash": dash},
            marker={"size": 8},
            hovertemplate="%{y:,.4r} " + unit.unit + " at %{x:.3r}/s" + f"<extra>{name}</extra>",
        )
    if limit_s is not None:
        level(drawn, (0, max(rates)), unit.scale * limit_s, f"limit {limit_s:g} s")
    return drawn
