"""What the SLO asks for, as it lies on a chart: the part within its limits, and the line of its target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from servesim.report.metrics import Metric
from servesim.report.scale import Scale
from servesim.report.theme import GREEN, NEUTRAL, faint

Shape = dict[str, Any]


def with_target(figure: go.Figure, y: Metric, target: float) -> go.Figure:
    """Return a figure with a line at what its vertical figure is to reach."""
    at = y.scale * target
    figure.add_shape(
        type="line",
        xref="paper",
        x0=0,
        x1=1,
        y0=at,
        y1=at,
        line={"color": NEUTRAL, "width": 1.5, "dash": "dashdot"},
    )
    return figure.add_annotation(
        text=f"target {at:g}{y.unit}",
        xref="paper",
        x=0.005,
        xanchor="left",
        y=at,
        yanchor="top",
        showarrow=False,
    )


def region(x: Metric, y: Metric, limits: Mapping[str, float], scales: Sequence[Scale]) -> list[Shape]:
    """Return the part of the plot that lies within the limits of the SLO, as a shape."""
    bounds = [metric.bound(limits[metric.limit]) if metric.limit in limits else None for metric in (x, y)]
    (x0, x1), (y0, y1) = (
        scale.ends if bound is None else scale.within(bound, metric.best)
        for bound, metric, scale in zip(bounds, (x, y), scales, strict=True)
    )
    if bounds == [None, None] or x0 >= x1 or y0 >= y1:
        return []
    look = {"fillcolor": faint(GREEN, 0.1), "line": {"width": 1, "color": faint(GREEN, 0.6), "dash": "dot"}}
    return [{"type": "rect", "layer": "below", "x0": x0, "x1": x1, "y0": y0, "y1": y1, **look}]
