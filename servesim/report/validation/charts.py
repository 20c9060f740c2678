"""Drawings of a measured run beside the simulated one."""

from __future__ import annotations

from math import log10
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray

from servesim.report.run.latency import MOST_POINTS, cdf
from servesim.report.theme import BLUE, NEUTRAL, VERMILLION, blank, faint, logarithmic
from servesim.screen.errors import unit_of
from servesim.validate.compare import Comparison
from servesim.validate.measured import Measured

Floats = NDArray[np.float64]

#: The two sides, their colours and lines: they differ without colour, too.
SIDES = (("measured", BLUE, "solid"), ("simulated", VERMILLION, "dash"))
#: Stretches of time over which medians are taken, at most; requests that each is to have.
_BINS, _ENOUGH = 40, 10


def distributions(comparison: Comparison, metric: str) -> go.Figure:
    """Return both cumulative distributions of a latency, on a logarithmic axis."""
    unit = unit_of(metric)
    samples = [unit.scale * run.sample(metric) for run in (comparison.measured, comparison.simulated)]
    figure = blank(
        x=f"{unit.title} ({unit.unit})",
        y="Share of requests" if metric != "itl" else "Share of gaps",
        xaxis=axis_over(*samples),
        yaxis={"tickformat": ".0%", "range": [0, 1.02]},
    )
    for sample, (name, hue, dash) in zip(samples, SIDES, strict=True):
        x, y = cdf(pd.Series(sample))
        figure.add_scatter(
            x=x,
            y=y,
            mode="lines",
            name=name,
            line={"color": hue, "width": 2.5, "dash": dash, "shape": "hv"},
            hovertemplate="%{y:.1%} take at most %{x:,.4r} " + unit.unit + f"<extra>{name}</extra>",
        )
    return figure


def over_time(comparison: Comparison, metric: str) -> go.Figure:
    """Return a latency by the time of sending: requests of both sides, and medians of stretches."""
    unit = unit_of(metric)
    runs = (comparison.measured, comparison.simulated)
    figure = blank(
        x="Time of sending (s)",
        y=f"{unit.title} ({unit.unit})",
        yaxis=axis_over(*(unit.scale * run.sample(metric) for run in runs)),
    )
    for run, (name, hue, dash) in zip(runs, SIDES, strict=True):
        sent_s, values = _positive(run, metric)
        _points(figure, sent_s, unit.scale * values, hue)
        middles, medians = medians_over_time(sent_s, values)
        figure.add_scatter(
            x=middles,
            y=unit.scale * medians,
            mode="lines",
            name=name,
            line={"color": hue, "width": 2.5, "dash": dash},
            hovertemplate="%{y:,.4r} " + unit.unit + f"<extra>{name}</extra>",
        )
    return figure


def _points(figure: go.Figure, sent_s: Floats, values: Floats, hue: str) -> None:
    """Draw requests as points; of very many, evenly spread ones."""
    kept = np.unique(np.linspace(0, len(values) - 1, min(len(values), MOST_POINTS)).round().astype(int))
    figure.add_scatter(
        x=sent_s[kept],
        y=values[kept],
        mode="markers",
        showlegend=False,
        marker={"color": faint(hue, 0.45), "size": 4},
        hoverinfo="skip",
    )


def by_load(rows: pd.DataFrame, metric: str) -> go.Figure:
    """Return the mean of a latency by how many requests were under way, measured and simulated."""
    unit = unit_of(metric)
    names = [f"{metric}_measured", f"{metric}_simulated"]
    values = [unit.scale * rows[name].to_numpy(float) for name in names]
    figure = blank(
        x="Requests under way at the sending",
        y=f"Mean {unit.title} ({unit.unit})",
        xaxis={"type": "category"},
        yaxis=axis_over(*values),
    )
    for side, (name, hue, dash) in zip(values, SIDES, strict=True):
        figure.add_scatter(
            x=bands(rows),
            y=side,
            mode="lines+markers",
            name=name,
            line={"color": hue, "width": 2.5, "dash": dash},
            marker={"size": 8},
            customdata=rows[["n", f"{metric}_error"]].to_numpy(float),
            hovertemplate="%{y:,.4r} "
            + unit.unit
            + ", %{customdata[0]:,} requests, error %{customdata[1]:+.1%}"
            f"<extra>{name}</extra>",
        )
    return figure


def bands(rows: pd.DataFrame) -> list[str]:
    """Return what bands of load are called: 1, 2-3, 4-7."""
    return [
        f"{low:.0f}" if low == high else f"{low:.0f}\u2013{high:.0f}"
        for low, high in zip(rows["from"], rows["to"], strict=True)
    ]


def medians_over_time(sent_s: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Return the middles of stretches of equally many requests, and the median of each."""
    count = int(np.clip(len(values) // _ENOUGH, 1, _BINS))
    parts = np.array_split(np.argsort(sent_s, kind="stable"), count)
    there = [part for part in parts if len(part)]
    middles, medians = (np.array([np.median(each[part]) for part in there]) for each in (sent_s, values))
    return middles, medians


def _positive(run: Measured, metric: str) -> tuple[Floats, Floats]:
    values = run.column(metric)
    known = values > 0
    return run.sent_s[known], values[known]


def axis_over(*samples: Floats) -> dict[str, Any]:
    """Return a logarithmic axis from the least to the largest of the positive values."""
    known = np.concatenate([each[each > 0] for each in samples])
    if not len(known):
        return logarithmic()
    low, high = float(known.min()), float(known.max())
    margin = max((high / low) ** 0.05, 1.05)
    ends = [low / margin, high * margin]
    return logarithmic(ends, range=[log10(end) for end in ends])


def diagonal(figure: go.Figure, low: float, high: float) -> None:
    """Draw where what is simulated equals what was measured."""
    figure.add_scatter(
        x=[low, high],
        y=[low, high],
        mode="lines",
        name="equal",
        line={"color": NEUTRAL, "width": 1.5, "dash": "dot"},
        hoverinfo="skip",
    )


def level(figure: go.Figure, ends: tuple[float, float], at: float, name: str) -> None:
    """Draw a horizontal line at a value, from end to end."""
    figure.add_scatter(
        x=list(ends),
        y=[at, at],
        mode="lines",
        name=name,
        line={"color": NEUTRAL, "width": 1.5, "dash": "dot"},
        hoverinfo="name",
    )
