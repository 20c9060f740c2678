"""The charts of the dashboard over loads, and those of loaded sweeps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from servesim.report.dashboard.curve import Curve
from servesim.report.dashboard.loaded import Loaded
from servesim.report.dashboard.rescore import BOUNDED, LEAST, MOST, Judge, judged
from servesim.report.frontier.curves import curves
from servesim.report.frontier.details import details, hover
from servesim.report.frontier.drawing import Drawing, Sweep
from servesim.report.frontier.view import View
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
from servesim.report.theme import NEUTRAL, Mode, template
from servesim.results.statistics import PERCENTILES

#: Heights in pixels: two rows of small charts go onto a laptop's screen.
SMALL, LARGE = 220, 340

#: What the load of a curve is called, by its key.
_LOAD_WORDS = {"workload.arrivals.rate_rps": "rate", "workload.arrivals.concurrency": "users"}

#: Legends in a corner of small charts that their curves leave free.
INSIDE = {
    side: {"orientation": "v", "x": place, "xanchor": side, "y": 0.98, "yanchor": "top"}
    for side, place in (("left", 0.02), ("right", 0.98))
}


class Titled(NamedTuple):
    """A figure with its title and what there is to say of it."""

    title: str
    figure: go.Figure
    caption: str = ""


def drawing_of(sweep: Sweep) -> Drawing:
    """Return the drawing of a sweep; figures that are known within bounds have these as intervals."""
    table = sweep.table
    known = [name for name in BOUNDED if f"{name}{LEAST}" in table]
    bounds = [f"{name}{end}" for name in known for end in (LEAST, MOST)]
    drawing = Drawing.of(replace(sweep, compare=[*sweep.compare, *bounds]))
    points = drawing.points
    if _is_certain(table):
        return drawing
    for name in known:
        points[f"{name}.low"], points[f"{name}.high"] = points[f"{name}{LEAST}"], points[f"{name}{MOST}"]
    said = details(points, table)
    points["text"] = hover(said)
    return replace(drawing, said=said)


def names(drawing: Drawing) -> list[str]:
    """Return what each configuration is called."""
    return [str(label) for label in drawing.points.groupby("config").label.first()]


def _chart(drawing: Drawing, x: Metric, y: Metric, height: int, *, front: bool = False) -> go.Figure:
    """Return one figure against another; its ``meta`` has the command of each point.

    Intervals over the seeds are left out where there are too many; bounds never are.
    """
    points = drawing.points
    target = drawing.target if y == ATTAINMENT else None
    figure = curves(
        points, x, y, drawing.chosen, limits=drawing.limits, front=front, target=target, height=height
    )
    if not drawing.bands and _is_certain(drawing.sweep.table):
        figure.data = [trace for trace in figure.data if trace.name != "interval"]
    return figure.update_layout(meta=[commands[0] for commands in points.commands])


def _ringed(figure: go.Figure, view: View, load: float) -> go.Figure:
    """Return a figure with a ring around the points of a load."""
    here = np.flatnonzero((view.points.load == load).to_numpy() & view.there)
    return figure.add_scatter(
        x=view.values(view.x)[here],
        y=view.values(view.y)[here],
        mode="markers",
        name="now",
        marker={"symbol": "circle-open", "size": 17, "color": NEUTRAL, "line": {"width": 2}},
        hoverinfo="skip",
        showlegend=False,
    )


def _with_legend(figure: go.Figure, side: str) -> go.Figure:
    """Return a figure of several configurations with a legend in a corner."""
    figure.for_each_trace(lambda trace: trace.update(showlegend=_is_named(trace)))
    return figure.update_layout(showlegend=True, legend=INSIDE[side])


def _is_named(trace: go.Scatter) -> bool:
    return trace.mode == "markers" and trace.legendgroup is not None and trace.name not in ("failed", "knee")


def over_loads(curve: Curve) -> list[Titled]:
    """Return the small frontier, goodput and cost over the loads of a curve; the present one is ringed."""
    drawing = drawing_of(Sweep(curve.table, "what-if", declared_load=curve.key))
    axis = drawing.load_axis(linear=True)
    word = _LOAD_WORDS[curve.key]
    charts = []
    for title, x, y, short, free in (
        (f"Frontier over the {word}", INTERACTIVITY, OUTPUT, "Output tokens/s per GPU", "right"),
        (f"Goodput against {word}", axis, GOODPUT, GOODPUT.title, "left"),
        (f"Cost against {word}", axis, COST, "$ per M output tokens", "right"),
    ):
        figure = _ringed(_chart(drawing, x, y, SMALL), View(drawing.points, x, y), curve.load)
        figure.update_layout(yaxis_title_text=short)
        if x is INTERACTIVITY:
            figure.update_layout(xaxis_title_text="Median tokens/s per user")
        charts.append(Titled(title, figure if len(drawing.chosen) == 1 else _with_legend(figure, free)))
    return charts


def of_sweep(loaded: Loaded, judge: Judge) -> tuple[Drawing, list[Titled]]:
    """Return the drawing of a loaded sweep as a judge sees it, and its charts."""
    table = judged(loaded.sweep.table, judge, loaded.requests)
    drawing = drawing_of(replace(loaded.sweep, table=table))
    return drawing, list(_sweep_charts(drawing))


def _is_certain(table: pd.DataFrame) -> bool:
    column = f"{BOUNDED[0]}{LEAST}"
    return column not in table or bool(
        (table[column].fillna(0) == table[f"{BOUNDED[0]}{MOST}"].fillna(0)).all()
    )


def _sweep_charts(drawing: Drawing) -> Iterator[Titled]:
    shaded = "Shaded: within the limit."
    pairs = [
        ("Throughput against interactivity", INTERACTIVITY, OUTPUT, shaded),
        ("Cost against interactivity", INTERACTIVITY, COST, f"{shaded} Costs at another price are exact."),
    ]
    bounds = "Exact: the limits are those of the runs, or every request is at hand."
    if not _is_certain(drawing.sweep.table):
        named = ", ".join(f"p{each}" for each in PERCENTILES)
        bounds = f"Bands: bounds, as the table has {named} of TTFT and TPOT, not every request."
    if drawing.load:
        pairs.append(("SLO attainment against load", drawing.load_axis(), ATTAINMENT, bounds))
        pairs.append(("Goodput against load", drawing.load_axis(), GOODPUT, bounds))
    else:
        pairs.append(("SLO attainment against TTFT", TTFT_P99, ATTAINMENT, bounds))
        pairs.append(("SLO attainment against TPOT", TPOT_P99, ATTAINMENT, bounds))
    for title, x, y, caption in pairs:
        yield Titled(title, _chart(drawing, x, y, LARGE, front=y in (OUTPUT, COST)), caption)


def themed(figure: go.Figure, mode: Mode) -> go.Figure:
    """Return a figure in the colours of a mode, without a height of its own."""
    return figure.update_layout(template=template(mode), margin={"t": 8, "b": 44, "r": 12})
