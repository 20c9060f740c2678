"""Latencies of a run's requests, divided by whom they are of: by tenant, and by class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from servesim.report.content import Chart, Choice, Section
from servesim.report.run.latency import LATENCIES, Latency, cdf_line
from servesim.report.theme import NEUTRAL, PALETTE, blank, colour, plain

#: Lines of one drawing, as many as there are colours; further groups are drawn together.
MOST_LINES = len(PALETTE)
_DASHES = ("solid", "dash", "dot")
_REST = "the others"


@dataclass(frozen=True)
class Division:
    """The requests of a run by whom they are of (``word`` says what that is), and those of each by name.

    A division by class comes in order of priority, the best first; one by tenant as the workload names them.
    """

    word: str
    groups: Mapping[str, pd.DataFrame]

    def values(self, column: str) -> dict[str, pd.Series]:
        """Return the known times of each group that has any; those behind the first few together."""
        known = {name: rows[column].dropna() for name, rows in self.groups.items()}
        known = {name: times for name, times in known.items() if len(times)}
        if len(known) <= MOST_LINES:
            return known
        shown = sorted(known, key=lambda name: -len(known[name]))[: MOST_LINES - 1]
        rest = pd.concat([times for name, times in known.items() if name not in shown])
        return {name: times for name, times in known.items() if name in shown} | {_REST: rest}


def divisions(requests: pd.DataFrame, tenants: Mapping[str, Any]) -> Iterator[Division]:
    """Yield the ways in which requests divide into several groups.

    Where each class is one tenant's and the other way round, that by class is left out.

    Args:
        requests: with the columns ``tenant`` and ``priority``.
        tenants: those of the workload by name, in the order of their numbers, as far as they have names.
    """
    names: dict[Any, str] = dict(enumerate(tenants))
    by_tenant = {names.get(n, str(n)): rows for n, rows in requests.groupby("tenant")}
    by_class = {f"priority {n}": rows for n, rows in requests.groupby("priority")}
    pairs = len(requests[["tenant", "priority"]].drop_duplicates())
    if len(by_tenant) > 1:
        yield Division("tenant", by_tenant)
    if len(by_class) > 1 and not pairs == len(by_class) == len(by_tenant):
        yield Division("class", by_class)


def divided_section(
    requests: pd.DataFrame, tenants: Mapping[str, Any], limits: Mapping[str, float | None]
) -> Section | None:
    """Return the distributions of each group's latencies; None where all requests are of one."""
    divided = [*divisions(requests, tenants)]
    cards = [
        Choice(f"Latency by {each.word}", charts, wide=len(divided) == 1)
        for each in divided
        if (charts := [*_charts(each, limits)])
    ]
    return Section("Tenants and classes", cards, "What does each group of requests get?") if cards else None


def _charts(division: Division, limits: Mapping[str, float | None]) -> Iterator[Chart]:
    """Yield a chart for each latency that any request of a division has."""
    for usual in LATENCIES:
        values = division.values(usual.column)
        if values:
            each = usual.suited([*values.values()])
            whose = f"{division.word}'s completed requests"
            caption = f"Share of each {whose} that take at most so long. {each.meaning}"
            yield Chart(each.title, divided_figure(values, each, limits[each.column]), caption)


def divided_figure(values: Mapping[str, pd.Series], latency: Latency, limit_s: float | None) -> go.Figure:
    """Return the cumulative distribution of each group's times (s), with the limit."""
    pooled = pd.concat([*values.values()])
    figure = blank(
        x=latency.axis,
        y="Share of completed requests",
        xaxis=latency.scale_of(pooled, limit_s),
        yaxis={"tickformat": ".0%", "range": [0, 1.02]},
        showlegend=True,
    )
    for number, (name, times) in enumerate(values.items()):
        hue, dash = colour(number), _DASHES[number % len(_DASHES)]
        line = {"color": NEUTRAL if name == _REST else hue, "width": 2.5, "dash": dash}
        p99 = latency.told(float(times.quantile(0.99)))
        figure.add_scatter(**cdf_line(times, latency, line), name=f"{plain(name)}, p99 {p99}")
    if limit_s is not None:
        line = {"color": NEUTRAL, "width": 1.5, "dash": "dashdot"}
        at = latency.scale * limit_s
        name = latency.limit(pooled, limit_s)
        figure.add_scatter(x=[at, at], y=[0, 1], mode="lines", name=name, line=line, hoverinfo="name")
    return figure
