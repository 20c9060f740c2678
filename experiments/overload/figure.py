"""Goodput and throughput over the load, and what became of every attempt at twice what can be borne."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from experiments.panels import grid, loaded
from servesim.report.frontier.page import Drawing
from servesim.report.metrics import GOODPUT
from servesim.report.theme import GREEN, ORANGE, SKY, VERMILLION, blank

#: The load at which attempts are counted, in requests/s: twice what the engine can serve.
HEAVY = 32.0
_DONE = "throughput.requests_per_s"
_ENDS = {"within the SLO": GREEN, "late": SKY, "timed out": VERMILLION, "turned away": ORANGE}


def figure(drawing: Drawing) -> go.Figure:
    """Return goodput and throughput over the load, and the attempts of a request by how they ended."""
    points = drawing.points
    over_load = [loaded(drawing, column) for column in (GOODPUT.column, _DONE)]
    drawn = grid([over_load, [_attempts(points[points.load == HEAVY])]])
    return drawn.update_layout(
        barmode="stack",
        legend2={
            "orientation": "h",
            "x": 1,
            "xanchor": "right",
            "y": 0.45,
            "yanchor": "top",
            "traceorder": "normal",
        },
    )


def ends(points: pd.DataFrame) -> pd.DataFrame:
    """Return of each variant how many of its attempts ended in each way, per request.

    A request is sent once and then again so many times: attempts = requests + retries, and of the attempts
    those that neither completed nor timed out were turned away. The share of those completed that is within
    the SLO is that of the steady part, goodput / throughput.
    """
    sent, completed, hung_up, retries = (
        points[f"accounting.{name}"] for name in ("injected", "completed", "timed_out", "retries")
    )
    good = completed * (points[GOODPUT.column] / points[_DONE]).fillna(0.0)
    found = (good, completed - good, hung_up, sent - completed - hung_up)
    counts = pd.DataFrame(dict(zip(_ENDS, found, strict=True)))
    return counts.div(sent - retries, axis=0).set_axis(points.variant)


def _attempts(points: pd.DataFrame) -> go.Figure:
    """Return the ends of attempts as bars, the first variant on top."""
    drawn = blank(x=f"Attempts of a request at {HEAVY:g} requests/s", y="", yaxis={"autorange": "reversed"})
    for name, counts in ends(points).items():
        look = {"name": str(name), "marker_color": _ENDS[str(name)], "legend": "legend2"}
        drawn.add_bar(x=counts, y=counts.index, orientation="h", **look)
    return drawn
