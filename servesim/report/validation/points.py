"""The page of closed-loop points: measured against simulated, and errors against users."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from math import log10
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from servesim.report.content import Chart, Section, Table
from servesim.report.page import Page
from servesim.report.theme import blank, colour, logarithmic, symbol
from servesim.report.validation.charts import diagonal, level
from servesim.report.validation.tables import verdict_table
from servesim.screen.errors import share, signed_percent, title_of, told, unit_of
from servesim.screen.figures import counted
from servesim.screen.points import points_notes, what_points
from servesim.screen.replays import assumed, capital
from servesim.validate.closed_loop import Scores, Simulated
from servesim.validate.measured import Figure
from servesim.validate.tolerance import Verdict

#: Rows of a table that is seen at once; a longer one waits until it is asked for.
_MOST_OPEN = 12


#: What is told of errors together.
_SCORES = ("n", "MAPE", "MdAPE", "bias")


def points_page(simulated: Simulated, scenario: Mapping[str, Any], verdicts: Sequence[Verdict]) -> Page:
    """Return the page of a table of points."""
    points = simulated.points
    lead = [
        f"Measured: {points.source}, {counted(len(points.points), 'closed-loop point')}.",
        f"Simulated: {what_points(simulated, scenario)}; each point with its own users and lengths.",
        *([f"{taken}."] if (taken := capital(assumed(scenario))) else []),
        "An error is simulated / measured - 1.",
    ]
    sections = [
        Section("Errors", [*([verdict_table(verdicts)] if verdicts else []), *_tables(simulated)]),
        Section("Points", [*_charts(simulated), _all_points(simulated)]),
    ]
    notes = [f"{note}." for note in points_notes(simulated, scenario)]
    return Page(f"{points.source}: measured and simulated", lead, sections, notes)


def _tables(simulated: Simulated) -> Iterator[Table]:
    """Yield the scores of all points, and of each value of what has several."""
    caption = "MAPE and MdAPE: mean and median of the absolute errors; bias: mean of the errors."
    rows = [[_title(key), *_cells_of(row)] for key, row in simulated.scores().items()]
    yield Table("Errors of all points", ["", *_SCORES], rows, caption)
    for title, name, heading in (
        ("By tensor parallelism", "tp", "GPUs"),
        ("By users", "concurrency", "users"),
    ):
        scores = simulated.scores(name)
        if len({key[2] for key in scores}) > 1:
            rows = [[_title(key), f"{key[2]:g}", *_cells_of(row)] for key, row in scores.items()]
            yield Table(title, ["", heading, *_SCORES], rows, folded=len(rows) > _MOST_OPEN)


def _cells_of(scores: Scores) -> list[str]:
    return [f"{scores.n:,}", share(scores.mape), share(scores.mdape), signed_percent(scores.bias)]


def _title(key: tuple[object, ...]) -> str:
    return title_of((str(key[0]), str(key[1]))).partition(" (")[0]


def _charts(simulated: Simulated) -> Iterator[Chart]:
    for figure in simulated.points.figures:
        rows = simulated.table.query("metric == @figure[0] and statistic == @figure[1]")
        if rows.empty:
            continue
        title = title_of(figure).partition(" (")[0]
        yield Chart(
            f"{title}, measured against simulated",
            _against(rows, figure),
            "A point is a row of the table; on the dotted line the simulation says what was measured.",
        )
        yield Chart(
            f"Error of {title} against users",
            _errors(rows),
            "Simulated / measured - 1; above the dotted line the simulation says more than was measured.",
        )


def _against(rows: pd.DataFrame, figure: Figure) -> go.Figure:
    unit = unit_of(*figure)
    values = unit.scale * rows[["measured", "simulated"]].to_numpy(float)
    margin = max((values.max() / values.min()) ** 0.05, 1.05)
    low, high = float(values.min() / margin), float(values.max() * margin)
    axis = logarithmic([low, high], range=[log10(low), log10(high)])
    drawn = blank(
        x=f"Measured {unit.title} ({unit.unit})",
        y=f"Simulated {unit.title} ({unit.unit})",
        xaxis=axis,
        yaxis=axis,
    )
    diagonal(drawn, low, high)
    for index, (name, each) in enumerate(_series(rows)):
        drawn.add_scatter(
            x=unit.scale * each.measured.to_numpy(float),
            y=unit.scale * each.simulated.to_numpy(float),
            **_marks(index, name, each),
            hovertemplate=f"%{{x:,.4r}} measured, %{{y:,.4r}} simulated<br>{_HOVER}",
        )
    return drawn


def _errors(rows: pd.DataFrame) -> go.Figure:
    users = rows.concurrency.to_numpy(float)
    ends = [float(users.min()) / 1.15, float(users.max()) * 1.15]
    axis = logarithmic(ends, range=[log10(end) for end in ends])
    if len(known := np.unique(users)) <= _MOST_OPEN:
        axis |= {"tickvals": known.tolist(), "ticktext": [f"{each:,.0f}" for each in known]}
    drawn = blank(
        x="Users",
        y="Error",
        xaxis=axis,
        yaxis={"tickformat": "+.0%"},
    )
    level(drawn, (ends[0], ends[1]), 0.0, "equal")
    for index, (name, each) in enumerate(_series(rows)):
        drawn.add_scatter(
            x=each.concurrency.to_numpy(float),
            y=each.error.to_numpy(float),
            **_marks(index, name, each),
            hovertemplate=f"%{{y:+.1%}}<br>{_HOVER}",
        )
    return drawn


_HOVER = (
    "%{customdata[0]:,} users, %{customdata[1]:,} tokens in, %{customdata[2]:,} out"
    "<br>line %{customdata[3]}<extra></extra>"
)


def _series(rows: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the points of each tensor parallelism, with its name."""
    for tp, each in rows.groupby(rows.tp.fillna(0).astype(int)):
        yield (counted(int(str(tp)), "GPU") if tp else "points"), each


def _marks(index: int, name: str, rows: pd.DataFrame) -> dict[str, Any]:
    return {
        "mode": "markers",
        "name": name,
        "marker": {"color": colour(index), "symbol": symbol(index), "size": 8, "opacity": 0.8},
        "customdata": rows[["concurrency", "isl", "osl", "line"]].to_numpy(np.int64),
    }


def _all_points(simulated: Simulated) -> Table:
    rows = [_cells(row, (row["metric"], row["statistic"])) for row in simulated.table.to_dict("records")]
    headings = (
        *("line", "GPUs", "users", "tokens in", "tokens out"),
        *("figure", "measured", "simulated", "error"),
    )
    return Table("All points", headings, rows, words=0, folded=True)


def _cells(row: Mapping[Hashable, Any], figure: Figure) -> list[str]:
    return [
        str(row["line"]),
        "-" if pd.isna(row["tp"]) else f"{row['tp']:g}",
        *(f"{row[name]:,}" for name in ("concurrency", "isl", "osl")),
        title_of(figure),
        *(told(figure, row[side]) for side in ("measured", "simulated")),
        signed_percent(row["error"]),
    ]
