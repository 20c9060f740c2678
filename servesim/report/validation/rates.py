"""Drawings of runs at several rates: figures against the rate, a line for each series of runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from servesim.report.content import Chart
from servesim.report.theme import blank, colour, symbol
from servesim.report.validation.charts import SIDES, axis_over, level
from servesim.screen.errors import unit_of
from servesim.screen.replays import by_users, knee_line
from servesim.validate.compare import Comparison
from servesim.validate.measured import Figure
from servesim.validate.series import TAIL, Knee, is_rated, series

_DRAWN: tuple[tuple[str, Figure], ...] = (
    ("p99 TTFT", TAIL),
    ("Median TTFT", ("ttft", "p50")),
    ("Mean TPOT", ("tpot", "mean")),
    ("Output throughput", ("throughput", "output_tokens")),
)
_LINES = "Solid lines are measured, dashed ones simulated."


def rates(comparisons: Sequence[Comparison], knees: Sequence[Knee]) -> Iterator[Chart]:
    """Yield tails and throughput against the rate, of the series of runs that have several rates."""
    for title, figure in _DRAWN:
        found = {
            name: sorted(known, key=lambda each: each.measured.offered_rps or 0.0)
            for name, group in series(comparisons).items()
            if len(known := [each for each in group if is_rated(each, figure) and not by_users(each)]) > 1
        }
        if not found:
            continue
        passed = knees if figure == TAIL else []
        lines = [f"{knee_line(knee)}." for knee in passed]
        caption = " ".join([*([_LINES] if len(found) > 1 else []), *lines])
        limit_s = passed[0].limit_s if passed else None
        yield Chart(f"{title} against the rate", _against_rate(found, figure, limit_s), caption)


def _against_rate(
    found: Mapping[str, Sequence[Comparison]], figure: Figure, limit_s: float | None
) -> go.Figure:
    unit = unit_of(*figure)
    values = {
        name: unit.scale * np.array([each.figures[figure] for each in group]) for name, group in found.items()
    }
    limit = [] if limit_s is None else [unit.scale * limit_s]
    drawn = blank(
        x="Requests per second",
        y=f"{unit.title} ({unit.unit})",
        xaxis={"rangemode": "tozero"},
        yaxis=axis_over(*(each.ravel() for each in values.values()), np.array(limit)),
    )
    last = 0.0
    for index, (name, group) in enumerate(found.items()):
        at = [each.measured.offered_rps or 0.0 for each in group]
        last = max(last, *at)
        _lines(drawn, at, values[name], (index, name) if len(found) > 1 else None, unit.unit)
    if limit_s is not None:
        level(drawn, (0, last), unit.scale * limit_s, f"limit {limit_s:g} s")
    return drawn


def _lines(
    drawn: go.Figure,
    at: Sequence[float],
    values: np.ndarray,
    of: tuple[int, str] | None,
    unit: str,
) -> None:
    """Draw both sides of a series: in the colours of the sides, or of several in one of its own."""
    for side, (name, hue, dash) in enumerate(SIDES):
        index, called = of or (0, "")
        drawn.add_scatter(
            x=at,
            y=values[:, side],
            mode="lines+markers",
            name=called if of else name,
            showlegend=side == 0 or not of,
            legendgroup=called or name,
            line={"color": colour(index) if of else hue, "width": 2.5, "dash": dash},
            marker={"size": 8, "symbol": symbol(index)},
            hovertemplate="%{y:,.4r} " + unit + " at %{x:.3r}/s" + f"<extra>{called} {name}</extra>",
        )
