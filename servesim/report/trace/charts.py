"""Drawings of a trace: rates over time, lengths, gaps, and the prefixes that prompts share."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from servesim.report.theme import BLUE, GREEN, NEUTRAL, VERMILLION, blank, faint, logarithmic
from servesim.workload.batch import IntArray
from servesim.workload.description import Description

#: Points of a distribution, at most.
MOST_POINTS = 1500

Floats = NDArray[np.float64]


def rate_figure(description: Description) -> go.Figure:
    """Return the requests, or sessions, per second in each bin of time, and their mean."""
    what = "sessions" if description.of_sessions else "requests"
    mean = description.rate_rps or 0.0
    figure = blank(
        x=_time_axis(description), y=f"{what.capitalize()}/s", height=320, yaxis={"rangemode": "tozero"}
    )
    figure.add_scatter(
        **_levels(description, description.rates_rps),
        name=f"{what}/s",
        line={"color": BLUE, "width": 1.8, "shape": "hv"},
        fill="tozeroy",
        fillcolor=faint(BLUE),
        hovertemplate="%{y:.4~g}/s<extra></extra>",
    )
    figure.add_scatter(
        x=[0, description.span_s / _unit(description.span_s)[0]],
        y=[mean, mean],
        mode="lines",
        name=f"mean, {mean:.3g}/s",
        line={"color": NEUTRAL, "dash": "dash", "width": 1.5},
        hoverinfo="skip",
    )
    return figure.update_layout(hovermode="x unified")


def tokens_figure(description: Description, tokens: IntArray, hue: str) -> go.Figure:
    """Return the tokens per second of the requests that come in each bin of time."""
    figure = blank(x=_time_axis(description), y="Tokens/s", height=320, yaxis={"rangemode": "tozero"})
    figure.add_scatter(
        **_levels(description, description.per_bin(tokens) / np.diff(description.edges_s)),
        name="tokens/s",
        line={"color": hue, "width": 1.8, "shape": "hv"},
        fill="tozeroy",
        fillcolor=faint(hue),
        showlegend=False,
        hovertemplate="%{y:,.4~s}/s<extra></extra>",
    )
    return figure.update_layout(hovermode="x unified")


def lengths_figure(description: Description) -> go.Figure:
    """Return how the lengths of prompts and outputs are distributed."""
    inputs, outputs = description.inputs.tokens, description.outputs.tokens
    drawn = [values[values > 0] for values in (inputs, outputs)]
    figure = blank(
        x="Tokens",
        y="Share of requests",
        xaxis=logarithmic(*(values for values in drawn if len(values))),
        yaxis={"tickformat": ".0%", "range": [0, 1.02]},
    )
    for name, values, hue in (("tokens in", inputs, BLUE), ("tokens out", outputs, VERMILLION)):
        figure.add_scatter(
            **_steps(values),
            name=name,
            line={"color": hue, "width": 2.2, "shape": "hv"},
            hovertemplate="%{y:.1%} have at most %{x:,} " + f"{name}<extra></extra>",
        )
    return figure


def gaps_figure(description: Description) -> go.Figure:
    """Return how the gaps between requests are distributed, beside those of a Poisson process."""
    gaps = np.diff(description.elapsed_s)
    positive = gaps[gaps > 0]
    figure = blank(
        x="Gap (s)",
        y="Share of gaps",
        xaxis=logarithmic(positive),
        yaxis={"tickformat": ".0%", "range": [0, 1.02]},
    )
    figure.add_scatter(
        **_steps(gaps),
        name="recorded",
        line={"color": BLUE, "width": 2.2, "shape": "hv"},
        hovertemplate="%{y:.1%} are at most %{x:.3~g} s<extra></extra>",
    )
    at = np.geomspace(positive.min(), positive.max(), 200)
    figure.add_scatter(
        x=at,
        y=-np.expm1(-at / gaps.mean()),
        name="Poisson",
        line={"color": NEUTRAL, "width": 1.8, "dash": "dash"},
        hovertemplate="Poisson: %{y:.1%} are at most %{x:.3~g} s<extra></extra>",
    )
    return figure


def reuse_figure(description: Description) -> go.Figure:
    """Return the share of blocks that were in an earlier prompt, in each bin of time."""
    reuse = description.reuse
    assert reuse is not None
    found, blocks = (description.per_bin(counts) for counts in (reuse.found, reuse.blocks))
    shares = np.divide(found, blocks, out=np.full(len(blocks), np.nan), where=blocks > 0)
    scale = {"tickformat": ".0%", "range": [0, 1.02]}
    figure = blank(x=_time_axis(description), y="Blocks found", height=320, yaxis=scale)
    figure.add_scatter(
        **_levels(description, shares),
        name="blocks found",
        line={"color": GREEN, "width": 1.8, "shape": "hv"},
        showlegend=False,
        hovertemplate="%{y:.1%}<extra></extra>",
    )
    return figure.update_layout(hovermode="x unified")


def distribution(values: NDArray[Any]) -> tuple[Floats, Floats]:
    """Return values, and the share of all that are at most as large; of many, evenly spread ones."""
    found, counts = np.unique(values, return_counts=True)
    shares = np.cumsum(counts) / len(values)
    if len(found) <= MOST_POINTS:
        return found.astype(np.float64), shares
    places = np.searchsorted(shares, np.linspace(0, 1, MOST_POINTS), side="left")
    kept = np.unique(places.clip(0, len(found) - 1))
    return found[kept].astype(np.float64), shares[kept]


def _steps(values: NDArray[Any]) -> dict[str, Any]:
    """Return x and y of the steps of a distribution, of what is positive and so has a place on the axis."""
    x, y = distribution(values)
    before = [0.0, *y][len(x) - int(np.count_nonzero(x > 0))]
    x, y = x[x > 0], y[x > 0]
    return {"x": np.append(x[:1], x), "y": np.append(before, y), "mode": "lines"}


def _levels(description: Description, levels: Floats) -> dict[str, Any]:
    """Return x, in the unit of the axis, and y of a line that is level in each bin."""
    unit_s, _ = _unit(description.span_s)
    return {"x": description.edges_s / unit_s, "y": np.append(levels, levels[-1]), "mode": "lines"}


def _time_axis(description: Description) -> str:
    return f"Time ({_unit(description.span_s)[1]})"


def _unit(span_s: float) -> tuple[float, str]:
    """Return the seconds of the unit of a time axis, and its name."""
    units = ((600.0, 1.0, "s"), (7200.0, 60.0, "min"), (172_800.0, 3600.0, "h"))
    return next(((size, name) for most, size, name in units if span_s <= most), (86_400.0, "days"))
