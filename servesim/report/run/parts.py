"""What latencies consist of: the parts of requests' time, by bands of percentiles."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import plotly.graph_objects as go

from servesim.report.theme import BLUE, NEUTRAL, ORANGE, PURPLE, SKY, VERMILLION, YELLOW, blank
from servesim.results.columns import PARTS

#: The colours of the parts of a request's time, in the order of its life.
PART_COLOURS = dict(zip(PARTS, (YELLOW, VERMILLION, BLUE, NEUTRAL, PURPLE, ORANGE, SKY), strict=True))

#: A part that is shorter, in seconds, is the rounding of sums.
LEAST_S = 5e-7

#: Bands of percentiles: from, below.
BANDS = ((0, 50), (50, 90), (90, 99), (99, 100))


def bands(requests: pd.DataFrame, column: str, parts: Mapping[str, pd.Series]) -> pd.DataFrame:
    """Return what a latency consists of, by bands of its own percentiles.

    A row per band that has requests: ``band`` (its name), ``requests``, ``mean_s`` of the latency, mean
    ``input_tokens`` and ``output_tokens``, and the mean seconds of each part. Parts that sum to the
    latency of every request sum to ``mean_s`` in every band.

    Args:
        requests: requests that have the latency.
        column: the latency.
        parts: seconds of each part, by request.
    """
    table = pd.DataFrame({name: values.loc[requests.index] for name, values in parts.items()})
    whole = requests[["input_tokens", "output_tokens"]].assign(mean_s=requests[column])
    rank = (requests[column].rank(method="first") - 1) / max(len(requests), 1) * 100
    rows = []
    for low, high in BANDS:
        mask = (rank >= low) & (rank < high)
        if mask.any():
            name = f"p{low} to p{high}" if high < 100 else f"slowest {100 - low}%"
            means = {**whole[mask].mean(), **table[mask].mean()}
            rows.append({"band": "fastest half" if low == 0 else name, "requests": int(mask.sum()), **means})
    return pd.DataFrame(rows, columns=["band", "requests", *whole.columns, *table.columns])


def e2e_parts(requests: pd.DataFrame) -> dict[str, pd.Series]:
    """Return the parts of E2E by name; they sum to it."""
    return {part: requests[f"{part}_s"] for part in PARTS}


def ttft_parts(requests: pd.DataFrame) -> dict[str, pd.Series]:
    """Return the parts of TTFT by name; they sum to it.

    Of transfer and decode queue only what the others leave of TTFT counts: nothing where the prefill pool
    emits token 1. The rest is the decode step that emits it, and preemptions before it.
    """
    parts = {name: requests[f"{name}_s"] for name in ("routing", "queue", "prefill")}
    for name in ("transfer", "decode_queue"):
        left = (requests.ttft_s - sum(parts.values())).clip(lower=0)
        parts[name] = requests[f"{name}_s"].where(requests[f"{name}_s"] < left, left)
    return parts | {"decode": requests.ttft_s - sum(parts.values())}


def stacked(table: pd.DataFrame, parts: list[str], *, shares: bool) -> go.Figure:
    """Return the bands as stacked bars of mean seconds, or of shares of the latency."""
    figure = blank(
        x="Share of the latency" if shares else "Mean time (s)",
        y="",
        height=300,
        barmode="stack",
        yaxis={"type": "category", "autorange": "reversed"},
        xaxis={"tickformat": ".0%", "range": [0, 1]} if shares else {},
    )
    figure.update_layout(legend={"traceorder": "normal"})
    for part in parts:
        if table[part].max() < LEAST_S:
            continue
        seconds = table[part].to_numpy()
        figure.add_bar(
            y=table.band,
            x=seconds / table.mean_s.to_numpy() if shares else seconds,
            orientation="h",
            name=part.replace("_", " "),
            marker={"color": PART_COLOURS[part]},
            customdata=table[["requests", "input_tokens", "output_tokens"]]
            .assign(seconds=seconds)
            .to_numpy(),
            hovertemplate="%{y}: %{customdata[3]:.4s}s<br>%{customdata[0]:,} requests, "
            "%{customdata[1]:,.0f} tokens in and %{customdata[2]:,.0f} out on average"
            "<extra>%{fullData.name}</extra>",
        )
    return figure
