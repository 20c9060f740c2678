"""How the requests of a run ended over time, where not all were served."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from servesim.report.run.bins import edges
from servesim.report.run.load import line
from servesim.report.run.saved import Run
from servesim.report.theme import BLUE, ORANGE, VERMILLION, blank

#: Bins of time: few enough for each to hold some ends.
BINS = 60

#: What becomes of a request, as it is saved, with its colour and its dash.
_ENDS = {"completed": (BLUE, "solid"), "timed_out": (VERMILLION, "solid"), "dropped": (ORANGE, "dot")}


def ends_over_time(run: Run) -> pd.DataFrame:
    """Return the requests that ended in each bin of time, per second, by how they did; attempts count each.

    The index is the left edge in seconds. Ends that nobody met have no column.
    """
    at = edges(*run.span, BINS)
    counts = {}
    for status in _ENDS:
        ended_s = run.requests.ended_s[run.requests.status == status].dropna()
        if len(ended_s):
            counts[status] = np.histogram(np.clip(ended_s, at[0], at[-1]), at)[0] / (at[1] - at[0])
    return pd.DataFrame(counts, index=pd.Index(at[:-1], name="start_s"))


def ends_figure(ends: pd.DataFrame, end_s: float) -> go.Figure:
    """Return the ends per second, a line for each way to end."""
    figure = blank(x="Time (s)", y="Requests/s", height=300, yaxis={"rangemode": "tozero"})
    for status in ends:
        hue, dash = _ENDS[str(status)]
        figure.add_scatter(
            **line(ends[status], end_s),
            name=str(status).replace("_", " "),
            line={"color": hue, "dash": dash},
            hovertemplate="%{y:.3s}<extra>%{fullData.name}</extra>",
        )
    return figure.update_layout(hovermode="x unified", showlegend=True)
