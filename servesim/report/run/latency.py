"""Latencies of a run: how they are distributed, how they went over time, and what they consist of."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray

from servesim.report.run.bins import edges
from servesim.report.theme import (
    BLUE,
    GREEN,
    NEUTRAL,
    ORANGE,
    SKY,
    VERMILLION,
    blank,
    faint,
    logarithmic,
)
from servesim.report.thin import thinned
from servesim.screen.figures import number

Floats = NDArray[np.float64]

#: Points of one drawing.
MOST_POINTS = 2000

#: Bins of a latency over time, at most; requests that a bin is to have on average, and that it must have for
#: its percentiles to be drawn.
BINS, ENOUGH, FEWEST = 60, 20, 5

PERCENTILES = (50, 90, 99)

#: Times from which on milliseconds are hard to read.
LONG_S = 10.0

#: A limit so many times beyond the values is out of sight. An axis reaches this share of its length, or at
#: least this factor, beyond what it shows.
NEAR, MARGIN, LEAST_MARGIN = 3.0, 0.05, 1.05


class Latency(NamedTuple):
    """A latency of requests: its name, its column (in seconds), what it is, and the unit of its axis."""

    title: str
    column: str
    meaning: str
    unit: str

    @property
    def scale(self) -> float:
        """Units of a second."""
        return {"s": 1.0, "ms": 1e3}[self.unit]

    @property
    def axis(self) -> str:
        """The title of its axis."""
        return f"{self.title} ({self.unit})"

    def suited(self, values: Sequence[pd.Series]) -> Latency:
        """Return the same latency in seconds where one of its values is of :data:`LONG_S` or more."""
        longest_s = max((float(each.max()) for each in values if each.notna().any()), default=0.0)
        return self._replace(unit="s") if longest_s >= LONG_S else self

    def drawn(self, values: pd.Series, limit_s: float | None) -> list[float]:
        """Return, in the unit, the ends of the positive values, and the limit where it is near them.

        A limit further away would squeeze the values: it is out of sight, and the legend says so. Nothing
        where no value is positive.
        """
        known = values[values > 0]
        if known.empty:
            return []
        near = [] if limit_s is None or not self.in_sight(known, limit_s) else [limit_s]
        return [self.scale * float(shown) for shown in (known.min(), known.max(), *near)]

    def scale_of(self, values: pd.Series, limit_s: float | None) -> dict[str, Any]:
        """Return the logarithmic axis that shows what is :meth:`drawn`."""
        shown = self.drawn(values, limit_s)
        if not shown:
            return logarithmic()
        low, high = min(shown), max(shown)
        margin = max((high / low) ** MARGIN, LEAST_MARGIN)
        ends = low / margin, high * margin
        return logarithmic(list(ends), range=[log10(end) for end in ends])

    def in_sight(self, values: pd.Series, limit_s: float) -> bool:
        """Tell whether a limit is within :data:`NEAR` times the positive values."""
        known = values[values > 0]
        return bool(not known.empty and known.min() / NEAR <= limit_s <= known.max() * NEAR)

    def limit(self, values: pd.Series, limit_s: float) -> str:
        """Return what a legend says of a limit."""
        far = "" if self.in_sight(values, limit_s) else ", out of sight"
        return f"limit {self.told(limit_s)}{far}"

    def told(self, seconds: float) -> str:
        """Return a time in the unit."""
        return f"{number(seconds, self.scale)} {self.unit}"


LATENCIES = (
    Latency("TTFT", "ttft_s", "Sending to the first token.", "ms"),
    Latency(
        "TPOT", "tpot_s", "Mean time per output token after the first: (E2E - TTFT) / (tokens - 1).", "ms"
    ),
    Latency("E2E", "e2e_s", "Sending to the last token.", "s"),
)


def cdf(values: pd.Series) -> tuple[Floats, Floats]:
    """Return values, and the share of all that are at most as large: non-decreasing, and 1 at the largest.

    Of many values some order statistics are kept: the least and the largest hundred, and evenly spread
    ones between.
    """
    ordered = np.sort(values.dropna().to_numpy(float))
    count = len(ordered)
    kept = np.arange(count)
    if count > MOST_POINTS:
        kept = np.unique(np.linspace(0, count - 1, MOST_POINTS - 200).round().astype(np.int64))
        kept = np.union1d(kept, [*range(100), *range(count - 100, count)])
    return ordered[kept], (kept + 1) / max(count, 1)


def cdf_line(values: pd.Series, latency: Latency, line: dict[str, Any]) -> dict[str, Any]:
    """Return the trace of a cumulative distribution of times (s), drawn by ``line``."""
    x, y = cdf(values)
    said = f"%{{y:.1%}} take at most %{{x:,.4r}} {latency.unit}<extra>%{{fullData.name}}</extra>"
    return {
        "x": latency.scale * x,
        "y": y,
        "mode": "lines",
        "line": {"shape": "hv", **line},
        "hovertemplate": said,
    }


def distribution(values: pd.Series, latency: Latency, limit_s: float | None = None) -> go.Figure:
    """Return the cumulative distribution of times (s), with lines at its percentiles and at the limit."""
    known = values.dropna()
    figure = blank(
        x=latency.axis,
        y="Share of completed requests",
        xaxis=latency.scale_of(known, limit_s),
        yaxis={"tickformat": ".0%", "range": [0, 1.02]},
    )
    line = cdf_line(known, latency, {"color": BLUE, "width": 2.5})
    figure.add_scatter(**line, name=latency.title, showlegend=False)
    for percent, dash in zip(PERCENTILES, ("solid", "dash", "dot"), strict=True):
        at_s = float(np.percentile(known, percent))
        name = f"p{percent} {latency.told(at_s)}"
        figure.add_scatter(**_upright(latency, at_s, name, NEUTRAL, dash))
    if limit_s is not None:
        name = latency.limit(known, limit_s)
        figure.add_scatter(**_upright(latency, limit_s, name, VERMILLION, "dashdot"))
    return figure


def _upright(latency: Latency, at_s: float, name: str, colour: str, dash: str) -> dict[str, Any]:
    at = latency.scale * at_s
    return {
        "x": [at, at],
        "y": [0, 1],
        "mode": "lines",
        "name": name,
        "line": {"color": colour, "width": 1.5, "dash": dash},
        "hoverinfo": "name",
    }


def over_time(
    requests: pd.DataFrame, latency: Latency, span: tuple[float, float], limit_s: float | None = None
) -> go.Figure:
    """Return a latency by the time of sending: points, and the median and 95th percentile of each bin."""
    known = requests[requests[latency.column] > 0]
    figure = blank(
        x="Time of sending (s)",
        y=latency.axis,
        yaxis=latency.scale_of(known[latency.column], limit_s),
    )
    points = thinned(known, MOST_POINTS, ["request_id"]).sort_values("sent_s", kind="stable")
    figure.add_scatter(
        x=points.sent_s.to_numpy(),
        y=latency.scale * points[latency.column].to_numpy(),
        mode="markers",
        name="request",
        marker={"color": faint(SKY, 0.7), "size": 5},
        customdata=points[["request_id", "input_tokens", "output_tokens"]].to_numpy(),
        hovertemplate="request %{customdata[0]}: %{y:,.4r} "
        + latency.unit
        + "<br>%{customdata[1]:,} tokens in, "
        "%{customdata[2]:,} out<extra></extra>",
    )
    table = percentiles_over_time(known, latency.column, span)
    for name, hue in (("median", GREEN), ("p95", ORANGE)):
        figure.add_scatter(
            x=table.index.to_numpy(),
            y=latency.scale * table[name].to_numpy(),
            mode="lines",
            name=name,
            line={"color": hue, "width": 2.5},
            hovertemplate="%{y:,.4r} " + latency.unit + "<extra>" + name + "</extra>",
        )
    if limit_s is not None:
        limit = latency.scale * limit_s
        figure.add_scatter(
            x=list(span),
            y=[limit, limit],
            mode="lines",
            name=latency.limit(known[latency.column], limit_s),
            line={"color": VERMILLION, "width": 1.5, "dash": "dashdot"},
            hoverinfo="name",
        )
    return figure


def percentiles_over_time(requests: pd.DataFrame, column: str, span: tuple[float, float]) -> pd.DataFrame:
    """Return ``median`` and ``p95`` by the middle of each bin of sending times; NaN where few."""
    at = edges(*span, int(np.clip(len(requests) // ENOUGH, 1, BINS)))
    place = np.clip(np.searchsorted(at, requests.sent_s, side="right") - 1, 0, len(at) - 2)
    groups = requests.groupby(place)[column]
    table = pd.DataFrame({"median": groups.median(), "p95": groups.quantile(0.95)})
    table[groups.size() < FEWEST] = np.nan
    middles = pd.Index((at[:-1] + at[1:]) / 2)
    return table.reindex(range(len(middles))).set_index(middles)
