"""The charts of the dashboard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from servesim.report.dashboard.loaded import Loaded
from servesim.report.dashboard.rescore import BOUNDED, LEAST, MOST, Judge, judged
from servesim.report.dashboard.state import RATE
from servesim.report.frontier.curves import View, curves
from servesim.report.frontier.details import details, hover
from servesim.report.frontier.page import limits_of
from servesim.report.frontier.points import LOADS, drawn_points, load_of
from servesim.report.frontier.style import Style, styles
from servesim.report.metrics import (
    ATTAINMENT,
    COST,
    GOODPUT,
    INTERACTIVITY,
    OUTPUT,
    TPOT_P99,
    TTFT_P99,
    Metric,
)
from servesim.report.run.latency import Latency, cdf
from servesim.report.scale import Scale
from servesim.report.theme import NEUTRAL, Mode, blank, colour, template
from servesim.results.statistics import PERCENTILES

#: Heights in pixels: two rows of small charts go onto a laptop's screen.
SMALL, LARGE = 220, 340

_DASHES = ("solid", "dash")

#: Legends in a corner of small charts that their curves leave free.
_INSIDE = {
    side: {"orientation": "v", "x": place, "xanchor": side, "y": 0.98, "yanchor": "top"}
    for side, place in (("left", 0.02), ("right", 0.98))
}


class Titled(NamedTuple):
    """A figure with its title and what there is to say of it."""

    title: str
    figure: go.Figure
    caption: str = ""


def distributions(times: Mapping[str, pd.DataFrame], latency: Latency, limit_s: float | None) -> go.Figure:
    """Return the cumulative distribution of a latency in each configuration, with the limit.

    ``times`` has a column of seconds for each latency, by the letter of the configuration.
    """
    known = {letter: each[latency.column].dropna() for letter, each in times.items()}
    drawn = [np.atleast_1d(part) for each in known.values() for part in latency.drawn(each, limit_s)]
    figure = blank(
        x=latency.axis,
        y="Share of requests",
        height=SMALL,
        xaxis=Scale.around(np.concatenate(drawn) if drawn else np.empty(0), True).axis(),
        yaxis={"tickformat": ".0%", "range": [0, 1.02]},
        showlegend=len(known) > 1,
        legend=_INSIDE["left"],
    )
    for number, (letter, values) in enumerate(known.items()):
        x, y = cdf(values)
        figure.add_scatter(
            x=latency.scale * x,
            y=y,
            mode="lines",
            name=letter,
            line={"color": colour(number), "width": 2.5, "shape": "hv", "dash": _DASHES[number]},
            hovertemplate=f"%{{y:.1%}} take at most %{{x:,.4r}} {latency.unit}<extra></extra>",
        )
    if limit_s is not None:
        figure.add_vline(x=latency.scale * limit_s, line={"color": NEUTRAL, "width": 1.5, "dash": "dashdot"})
    return figure


@dataclass(frozen=True)
class Points:
    """Points of a sweep as they are drawn, with their styles and the limits that all share."""

    rows: pd.DataFrame
    load: str | None
    chosen: Sequence[Style]
    limits: Mapping[str, float]

    @classmethod
    def of(cls, table: pd.DataFrame, load: str | None) -> Points:
        """Return the points of a table; figures that are known within bounds have these as intervals."""
        bounds = [f"{name}{end}" for name in BOUNDED for end in (LEAST, MOST) if f"{name}{LEAST}" in table]
        rows = drawn_points(table, load, bounds)
        for name in BOUNDED:
            if f"{name}{LEAST}" in table and (table[f"{name}{LEAST}"] < table[f"{name}{MOST}"]).any():
                rows[f"{name}.low"], rows[f"{name}.high"] = rows[f"{name}{LEAST}"], rows[f"{name}{MOST}"]
        rows["text"] = hover(details(rows, table))
        return cls(rows, load, styles(rows.config.nunique()), limits_of(table))

    @property
    def axis(self) -> Metric:
        """The load as a figure."""
        name, unit = LOADS.get(self.load or "", ("Load", str(self.load)))
        return Metric("load", f"{name} ({unit})", unit)

    def chart(self, x: Metric, y: Metric, height: int, *, front: bool = False) -> go.Figure:
        """Return one figure against another; its ``meta`` has the command of each point."""
        figure = curves(self.rows, x, y, self.chosen, limits=self.limits, front=front, height=height)
        return figure.update_layout(meta=[commands[0] for commands in self.rows.commands])

    def names(self) -> list[str]:
        """Return what each configuration is called."""
        return [str(label) for label in self.rows.groupby("config").label.first()]

    def ring(self, figure: go.Figure, x: Metric, y: Metric, load: float) -> go.Figure:
        """Add a ring around the points of a load."""
        view = View(self.rows, x, y)
        here = np.flatnonzero((self.rows.load == load).to_numpy() & view.there)
        return figure.add_scatter(
            x=view.values(x)[here],
            y=view.values(y)[here],
            mode="markers",
            name="now",
            marker={"symbol": "circle-open", "size": 17, "color": NEUTRAL, "line": {"width": 2}},
            hoverinfo="skip",
            showlegend=False,
        )


def _with_legend(figure: go.Figure, side: str) -> go.Figure:
    """Return a figure of several configurations with a legend in a corner."""
    figure.for_each_trace(lambda trace: trace.update(showlegend=_is_named(trace)))
    return figure.update_layout(showlegend=True, legend=_INSIDE[side])


def _is_named(trace: go.Scatter) -> bool:
    return trace.mode == "markers" and trace.legendgroup is not None and trace.name not in ("failed", "knee")


def over_rates(table: pd.DataFrame, rate_rps: float) -> list[Titled]:
    """Return the small frontier, goodput and cost over the rates of a curve; the present rate is ringed."""
    points = Points.of(table, RATE)
    charts = []
    for title, x, y, short, free in (
        ("Frontier over the rate", INTERACTIVITY, OUTPUT, "Output tokens/s per GPU", "right"),
        ("Goodput against rate", points.axis, GOODPUT, GOODPUT.title, "left"),
        ("Cost against rate", points.axis, COST, "$ per M output tokens", "right"),
    ):
        figure = points.ring(points.chart(x, y, SMALL), x, y, rate_rps)
        figure.update_layout(yaxis_title_text=short)
        charts.append(Titled(title, figure if len(points.chosen) == 1 else _with_legend(figure, free)))
    return charts


def of_sweep(loaded: Loaded, judge: Judge) -> tuple[Points, list[Titled]]:
    """Return the charts of a loaded sweep, as a judge sees it."""
    table = judged(loaded.sweep.table, judge, loaded.requests)
    points = Points.of(table, load_of(table, loaded.sweep.declared_load))
    return points, list(_sweep_charts(points, _is_certain(table)))


def _is_certain(table: pd.DataFrame) -> bool:
    column = f"{BOUNDED[0]}{LEAST}"
    return column not in table or bool(
        (table[column].fillna(0) == table[f"{BOUNDED[0]}{MOST}"].fillna(0)).all()
    )


def _sweep_charts(points: Points, certain: bool) -> Iterator[Titled]:
    shaded = "Shaded: within the limit."
    pairs = [
        ("Throughput against interactivity", INTERACTIVITY, OUTPUT, shaded),
        ("Cost against interactivity", INTERACTIVITY, COST, f"{shaded} Costs at another price are exact."),
    ]
    bounds = "Exact: the limits are those of the runs, or every request is at hand."
    if not certain:
        named = ", ".join(f"p{each}" for each in PERCENTILES)
        bounds = f"Bands: bounds, as the table has {named} of TTFT and TPOT, not every request."
    if points.load:
        pairs.append(("SLO attainment against load", points.axis, ATTAINMENT, bounds))
        pairs.append(("Goodput against load", points.axis, GOODPUT, bounds))
    else:
        pairs.append(("SLO attainment against TTFT", TTFT_P99, ATTAINMENT, bounds))
        pairs.append(("SLO attainment against TPOT", TPOT_P99, ATTAINMENT, bounds))
    for title, x, y, caption in pairs:
        yield Titled(title, points.chart(x, y, LARGE, front=y in (OUTPUT, COST)), caption)


def themed(figure: go.Figure, mode: Mode) -> go.Figure:
    """Return a figure in the colours of a mode, without a height of its own."""
    return figure.update_layout(template=template(mode), margin={"t": 8, "b": 44, "r": 12})
