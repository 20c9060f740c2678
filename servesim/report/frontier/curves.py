"""The frontier: one figure of the points of a sweep against another, or against the load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray

from servesim.frontier.knee import knee
from servesim.report.frontier.bands import band
from servesim.report.frontier.bounds import region, with_target
from servesim.report.frontier.fronts import fronts
from servesim.report.frontier.points import CLEAN, FAILED, SATURATED, UNSETTLED
from servesim.report.frontier.style import Style
from servesim.report.frontier.view import View
from servesim.report.metrics import Metric
from servesim.report.scale import Scale
from servesim.report.theme import NEUTRAL, blank, faint, plain

Floats = NDArray[np.float64]
Trace = dict[str, Any]

_OPEN = {CLEAN: "", SATURATED: "-open", UNSETTLED: "-dot"}
_NOT_CLEAN = "-open-dot"


def curves(
    points: pd.DataFrame,
    x: Metric,
    y: Metric,
    chosen: Sequence[Style],
    *,
    limits: Mapping[str, float] | None = None,
    front: bool = False,
    knees: bool = False,
    target: float | None = None,
    bands: bool = True,
    height: int = 400,
) -> go.Figure:
    """Return a curve per configuration, along its loads.

    Args:
        points: of ``drawn_points``, with a column ``text`` to show on hovering. Each that has both figures is
            drawn once, with its row number as customdata.
        x: the figure on the horizontal axis.
        y: the figure on the vertical axis.
        chosen: the style of each configuration.
        limits: the SLO in seconds, by name; where an axis is bounded by one of them, the good side is shaded.
        front: whether to emphasise the Pareto front of all configurations, of each traffic its own.
        knees: whether to ring the knee of each curve that meets the SLO somewhere.
        target: what the vertical figure is to reach, in the unit of the table: a line.
        bands: whether intervals are seen from the start.
        height: of the figure, in pixels.

    """
    view = View(points, x, y)
    there, joined = view.there, view.joined()
    emphasised = view.front if front else np.zeros(len(points), bool)
    scales = [view.scale(x), view.scale(y, [] if target is None else [y.scale * target])]
    boxes = _boxes(view, scales)
    figure = blank(x=x.title, y=y.title, height=height, xaxis=scales[0].axis(), yaxis=scales[1].axis())
    traces = list(fronts(view, emphasised))
    for config, style in enumerate(chosen):
        own = np.flatnonzero((points.config == config).to_numpy() & there)
        if len(own):
            traces += _bands(config, style, boxes, scales, own, joined, bands)
            traces += _lines(config, style, view, own, joined)
            traces.append(_markers(config, style, view, own, emphasised if front else None))
    if knees:
        traces += [trace for config, style in enumerate(chosen) for trace in _knee(config, style, view)]
    if x.column == "load":
        traces += [
            trace for config, style in enumerate(chosen) for trace in _failed(config, style, view, scales)
        ]
    figure.add_traces(traces)
    figure.update_layout(showlegend=False, shapes=region(x, y, limits or {}, scales))
    return figure if target is None else with_target(figure, y, target)


def _boxes(view: View, scales: Sequence[Scale]) -> list[tuple[float, float, float, float]]:
    """Return the intervals of each point as they lie on the axes, cut where the axes end."""
    ends = [
        scale.place(np.clip(view.values(metric, end), scale.low, scale.high))
        for scale, metric in zip(scales, (view.x, view.y), strict=True)
        for end in (".low", ".high")
    ]
    return list(zip(*(each.tolist() for each in ends), strict=True))


def _bands(
    config: int,
    style: Style,
    boxes: Sequence[Any],
    scales: Sequence[Scale],
    own: Any,
    joined: Any,
    seen: bool,
) -> list[Trace]:
    """Return the band of a configuration; where the load is exact, with whiskers at the points."""
    exact = all(boxes[row][0] == boxes[row][1] for row in own)
    places = {row: index for index, row in enumerate(own)}
    x, y = band([boxes[row] for row in own], [places[row] for row in joined if row in places])
    if style.plain or not x:
        return []
    x_values, y_values = (
        scale.value(np.array(each, float)) for scale, each in zip(scales, (x, y), strict=True)
    )
    return [
        {
            "type": "scatter",
            "x": x_values,
            "y": y_values,
            "mode": "lines",
            "fill": "toself",
            "fillcolor": faint(style.colour, 0.16),
            "line": {"width": 1 if exact else 0, "color": faint(style.colour, 0.3)},
            "hoverinfo": "skip",
            "name": "interval",
            "visible": seen,
            "legendgroup": f"c{config}",
        }
    ]


def _lines(config: int, style: Style, view: View, own: Any, joined: Any) -> list[Trace]:
    """Return the lines of a configuration: its own dash between clean points, dots to and from others."""
    clean = (view.points.state == CLEAN).to_numpy()
    starts = [row for row in joined if row in set(own)]
    firm = [row for row in starts if clean[row] and clean[row + 1]]
    loose = [row for row in starts if row not in set(firm)]
    look = {"color": faint(NEUTRAL, 0.55) if style.plain else style.colour, "width": 1 if style.plain else 2}
    return [
        {
            "type": "scatter",
            "x": _segments(view.values(view.x), rows),
            "y": _segments(view.values(view.y), rows),
            "mode": "lines",
            "line": look | {"dash": dash},
            "hoverinfo": "skip",
            "name": "line",
            "legendgroup": f"c{config}",
        }
        for rows, dash in ((firm, style.dash), (loose, "dot"))
        if rows
    ]


def _segments(values: Floats, starts: Sequence[int]) -> Floats:
    """Return the values at both ends of each segment, with NaN where the next one does not follow on."""
    out: list[float] = []
    for index, row in enumerate(starts):
        if index and starts[index - 1] + 1 == row:
            out.append(values[row + 1])
        else:
            out += [*([np.nan] if out else []), values[row], values[row + 1]]
    return np.array(out)


def _markers(config: int, style: Style, view: View, own: Any, front: Any) -> Trace:
    """Return the points of a configuration; ``front`` says which are on the front, None: there is none."""
    rows = view.points.iloc[own]
    ahead = np.ones(len(own), bool) if front is None else front[own]
    clean = (rows.state == CLEAN).to_numpy()
    usual = 5 if style.plain else 7
    return {
        "type": "scatter",
        "x": view.values(view.x)[own],
        "y": view.values(view.y)[own],
        "mode": "markers",
        "marker": {
            "color": style.colour,
            "symbol": [style.symbol + _OPEN.get(state, _NOT_CLEAN) for state in rows.state],
            "size": np.where(ahead & clean & (front is not None), 10, usual),
            "opacity": np.where(ahead, 1.0, np.where(clean, 0.45, 0.7)),
            "line": {"width": np.where(clean, 0.0, 1.5)},
        },
        "customdata": own.tolist(),
        "text": rows.text.tolist(),
        "hovertemplate": "%{text}<extra></extra>",
        "name": plain(rows.label.iloc[0]),
        "legendgroup": f"c{config}",
    }


def _knee(config: int, style: Style, view: View) -> list[Trace]:
    """Return a ring around the point at which a curve turns, if its configuration meets the SLO at all."""
    own = np.flatnonzero((view.points.config == config).to_numpy() & view.there)
    x, y = (view.values(metric)[own] for metric in (view.x, view.y))
    turn = knee(x, y) if view.points.met.iloc[own].any() else None
    if turn is None:
        return []
    return [
        {
            "type": "scatter",
            "x": x[[turn]],
            "y": y[[turn]],
            "mode": "markers",
            "marker": {"color": style.colour, "symbol": "circle-open", "size": 20, "line": {"width": 2.5}},
            "hoverinfo": "skip",
            "name": "knee",
            "legendgroup": f"c{config}",
        }
    ]


def _failed(config: int, style: Style, view: View, scales: Sequence[Scale]) -> list[Trace]:
    """Return crosses at the bottom, at the loads where every seed of a configuration failed."""
    own = np.flatnonzero(((view.points.config == config) & (view.points.state == FAILED)).to_numpy())
    if not len(own):
        return []
    return [
        {
            "type": "scatter",
            "x": view.values(view.x)[own],
            "y": np.full(len(own), scales[1].low),
            "mode": "markers",
            "cliponaxis": False,
            "marker": {"color": style.colour, "symbol": "x-thin-open", "size": 9, "line": {"width": 2}},
            "customdata": own.tolist(),
            "text": view.points.text.iloc[own].tolist(),
            "hovertemplate": "%{text}<extra></extra>",
            "name": "failed",
            "legendgroup": f"c{config}",
        }
    ]
