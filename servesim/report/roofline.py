"""The roofline: FLOP/s reached over FLOPs per byte, under what the datasheet allows.

Williams, Waterman and Patterson, "Roofline: an insightful visual performance model for multicore
architectures", Communications of the ACM 52(4), 2009.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from servesim.report.theme import NEUTRAL, blank, colour, logarithmic, plain, symbol

_DASHES = ("solid", "dash", "dot")


def roofline(points: pd.DataFrame, peaks: Mapping[str, float], bytes_per_s: float) -> go.Figure:
    """Return the points under their roofs, all per GPU and on logarithmic scales.

    Args:
        points: columns ``series``, ``intensity`` (FLOPs per byte), ``flops_per_s`` and ``text``; those
            without FLOPs or bytes have no place and are not drawn.
        peaks: FLOP/s by the name of the format.
        bytes_per_s: the bandwidth of the memory.

    """
    shown = points[(points.intensity > 0) & (points.flops_per_s > 0) & np.isfinite(points.intensity)]
    ends = _ends(shown.intensity.to_numpy(), max(peaks.values(), default=bytes_per_s) / bytes_per_s)
    figure = blank(
        x="Arithmetic intensity (FLOPs per byte of weights and KV)",
        y="Reached (FLOP/s per GPU)",
        height=420,
        xaxis=logarithmic(ends),
        yaxis=logarithmic(shown.flops_per_s, [*peaks.values()], exponentformat="power"),
    )
    for index, (series, rows) in enumerate(shown.groupby("series", sort=False)):
        figure.add_scatter(
            x=rows.intensity.to_numpy(),
            y=rows.flops_per_s.to_numpy(),
            mode="markers",
            name=plain(series),
            marker={"color": colour(index), "symbol": symbol(index), "size": 5, "opacity": 0.7},
            text=[plain(text) for text in rows.text],
            hovertemplate="%{text}<br>%{x:.3s} FLOPs per byte<br>%{y:.3s}FLOP/s<extra></extra>",
        )
    for index, (name, peak) in enumerate(sorted(peaks.items(), key=lambda each: -each[1])):
        figure.add_scatter(**_roof(name, peak, bytes_per_s, ends, _DASHES[index % len(_DASHES)]))
    return figure


def roofs_in_words(peaks: Mapping[str, float], bytes_per_s: float) -> str:
    """Return the sentence of a caption that tells the roofs."""
    rates = ", ".join(f"{name} {peak / 1e12:,.0f} TFLOP/s" for name, peak in peaks.items())
    return f"Roofs of one GPU: {rates}; {bytes_per_s / 1e12:.3g} TB/s."


def _ends(intensity: np.ndarray, ridge: float) -> tuple[float, float]:
    """Return the intensities that roofs begin and end at: beyond all points and the highest ridge."""
    low, high = (intensity.min(), intensity.max()) if len(intensity) else (ridge, ridge)
    return min(low, ridge / 10) / 2, max(high, ridge * 10) * 2


def _roof(
    name: str, peak: float, bytes_per_s: float, ends: tuple[float, float], dash: str
) -> dict[str, object]:
    ridge = peak / bytes_per_s
    x = [ends[0], ridge, ends[1]]
    return {
        "x": x,
        "y": [min(peak, bytes_per_s * intensity) for intensity in x],
        "mode": "lines",
        "name": f"{plain(name)} roof",
        "line": {"color": NEUTRAL, "dash": dash, "width": 2},
        "hoverinfo": "skip",
    }
