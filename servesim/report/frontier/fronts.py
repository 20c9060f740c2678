"""The Pareto fronts of the points of a sweep, one for each traffic: the points of two are not alike."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from servesim.report.frontier.view import View
from servesim.report.theme import NEUTRAL, faint, plain

Trace = dict[str, Any]


def fronts(view: View, front: NDArray[np.bool_]) -> Iterator[Trace]:
    """Yield the front of each traffic; where there are several, the end where they differ says whose."""
    if not front.any():
        return
    several = view.points.traffic.nunique() > 1
    for traffic in view.points.traffic[front].unique():
        yield _front(view, front & (view.points.traffic == traffic).to_numpy(), traffic if several else "")


def _front(view: View, front: NDArray[np.bool_], said: str) -> Trace:
    """Return a front as steps: up to each point, what can be had is the best at or beyond it."""
    x, y = (view.values(metric)[front] for metric in (view.x, view.y))
    order = np.lexsort((y, x))
    end = int(np.argmax(view.y.best * y[order]))
    side = f"{'top' if view.y.best > 0 else 'bottom'} {'right' if view.x.best > 0 else 'left'}"
    text = [plain(said) if place == end else "" for place in range(len(x))]
    named = {"text": text, "textposition": side} if said else {}
    return named | {
        "type": "scatter",
        "x": x[order],
        "y": y[order],
        "mode": "lines+text" if said else "lines",
        "line": {"color": faint(NEUTRAL, 0.45), "width": 6, "shape": "vh" if view.x.best > 0 else "hv"},
        "hoverinfo": "skip",
        "name": "Pareto front",
    }
