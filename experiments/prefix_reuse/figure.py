"""First tokens and dollars against the share of prompts that is found."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from servesim.report.frontier.page import Drawing
from servesim.report.metrics import COST, metric
from servesim.report.theme import BLUE, NEUTRAL, VERMILLION, template

#: The load at which first tokens are compared, in requests/s: light, so that nobody waits.
LIGHT = 2.0
_HITS = metric("prefill.hit_rate")
_TTFT = metric("latency.ttft_s.mean")


def figure(drawing: Drawing) -> go.Figure:
    """Return mean TTFT at a light load, and the least cost within the SLO, over the hit rate.

    The line of TTFT is the arithmetic of prefill: a share h of the requests finds all of the system prompt,
    so TTFT(h) = TTFT(0) - h / h_1 x (TTFT(0) - TTFT(h_1)), where h_1 is the hit rate of a single prompt.
    That of cost is the straight line between the same two ends.
    """
    light = drawing.points[drawing.points.load == LIGHT].sort_values(_HITS.column)
    best = pd.DataFrame(_cheapest(drawing.points)).sort_values(_HITS.column)
    drawn = make_subplots(cols=2, horizontal_spacing=0.12)
    titles = f"Mean TTFT at {LIGHT:g} requests/s (s)", f"Least {COST.title[0].lower()}{COST.title[1:]}"
    for place, (rows, shown, colour) in enumerate(((light, _TTFT, BLUE), (best, COST, VERMILLION)), 1):
        hits, values = rows[_HITS.column] * _HITS.scale, rows[shown.column] * shown.scale
        ends = [int(np.argmin(hits)), int(np.argmax(hits))]
        line = {"color": NEUTRAL, "dash": "dot"}
        drawn.add_scatter(
            x=hits.iloc[ends],
            y=values.iloc[ends],
            mode="lines",
            line=line,
            showlegend=False,
            col=place,
            row=1,
        )
        drawn.add_scatter(
            x=hits,
            y=values,
            mode="markers+text",
            marker={"color": colour, "size": 9},
            text=rows.variant,
            textposition=["top right" if row < 2 or row % 2 else "bottom left" for row in range(len(rows))],
            textfont={"size": 10},
            showlegend=False,
            col=place,
            row=1,
        )
        drawn.update_yaxes(title=titles[place - 1], rangemode="tozero", col=place, row=1)
        drawn.update_xaxes(title=_HITS.title, range=[-4, 112], col=place, row=1)
    return drawn.update_layout(template=template("light"), margin={"l": 64, "r": 20, "t": 16, "b": 52})


def _cheapest(points: pd.DataFrame) -> list[pd.Series]:
    """Return of each variant the cheapest load that meets the SLO, all seeds taken together."""
    met = points[points.meets]
    return [rows.loc[rows[COST.column].idxmin()] for _, rows in met.groupby("variant", sort=False)]
