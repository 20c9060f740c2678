"""Several charts in one figure, whose series share colours and one legend."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from servesim.report.frontier.page import Drawing
from servesim.report.metrics import metric
from servesim.report.theme import template

#: The legend, above the drawing, however many lines it takes.
_ABOVE = {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"}
_SPACE = 0.24  # between charts, over their number: room for the titles and ticks of an axis


def over_load(drawing: Drawing, *rows: Sequence[str]) -> go.Figure:
    """Return a chart of each figure against the load, row by row."""
    return grid([[loaded(drawing, column) for column in columns] for columns in rows])


def loaded(drawing: Drawing, column: str) -> go.Figure:
    """Return a chart of a figure against the load."""
    return drawing.loaded("", metric(column), "").figure


def grid(rows: Sequence[Sequence[go.Figure]]) -> go.Figure:
    """Return rows of charts, whose series of the same name belong to one entry of the legend.

    The charts of a row share its width; the longest row has a whole number of times as many as any other.
    """
    columns = max(map(len, rows))
    spans = [columns // len(row) for row in rows]
    drawn = make_subplots(
        rows=len(rows),
        cols=columns,
        specs=[
            [cell for _ in row for cell in ({"colspan": span}, *[None] * (span - 1))]
            for row, span in zip(rows, spans, strict=True)
        ],
        horizontal_spacing=_SPACE / columns,
        vertical_spacing=_SPACE / len(rows) ** 1.5,
    )
    for row, (charts, span) in enumerate(zip(rows, spans, strict=True), 1):
        for place, chart in enumerate(charts):
            _place(drawn, chart, row, 1 + place * span)
    margin = {"l": 64, "r": 20, "t": 16, "b": 52}
    return drawn.update_layout(template=template("light"), legend=_ABOVE, margin=margin)


def _place(drawn: go.Figure, chart: go.Figure, row: int, col: int) -> None:
    """Put a chart into a cell: its series, axes, shapes and words."""
    for trace in chart.data:
        drawn.add_trace(trace, row=row, col=col)
    drawn.update_xaxes(chart.layout.xaxis.to_plotly_json(), row=row, col=col)
    drawn.update_yaxes(chart.layout.yaxis.to_plotly_json(), row=row, col=col)
    axes = drawn.get_subplot(row, col)
    refs = {"yref": axes.yaxis.plotly_name.replace("axis", "")}
    for part, add in (
        (chart.layout.shapes, drawn.add_shape),
        (chart.layout.annotations, drawn.add_annotation),
    ):
        for each in part:
            wide = " domain" if each.xref == "paper" else ""  # as wide as the chart, whatever its axis
            add(each, xref=axes.xaxis.plotly_name.replace("axis", "") + wide, **refs)
