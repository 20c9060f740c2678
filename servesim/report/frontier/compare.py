"""Configurations side by side: a figure of each with its interval, and the difference from a baseline."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from servesim.report.frontier.style import Style
from servesim.report.metrics import Metric
from servesim.report.scale import Scale
from servesim.report.theme import NEUTRAL, blank, plain

_ROW = 26  # pixels


def side_by_side(points: pd.DataFrame, metric: Metric, chosen: Sequence[Style]) -> go.Figure:
    """Return a row per configuration with the metric and its interval, in a study without a load.

    ``points`` are those of ``drawn_points``, with a column ``text``; what failed has a row that says so.
    """
    centre, low, high = (metric.scale * points[f"{metric.column}{end}"] for end in ("", ".low", ".high"))
    marks = pd.DataFrame({"config": points.config, "label": points.label, "text": points.text})
    marks = marks.assign(centre=centre, low=low, high=high, solid=points.state == "clean")
    figure = _rows(marks, metric.title, chosen, metric.logarithmic)
    failed = points[points[metric.column].isna()]
    return figure.add_annotation(visible=False) if failed.empty else _with_failures(figure, failed)


def differences(compared: pd.DataFrame, metric: Metric, baseline: str, chosen: Sequence[Style]) -> go.Figure:
    """Return a row per configuration with how far it is from the baseline, paired by seed.

    ``compared`` has the columns ``config``, ``label``, ``difference``, ``low``, ``high`` and ``n``. Where the
    interval holds 0, so that the difference may be chance, the marker is open.
    """
    centre, low, high = (metric.scale * compared[name] for name in ("difference", "low", "high"))
    marks = compared[["config", "label"]].assign(centre=centre, low=low, high=high)
    marks["solid"] = (low > 0) | (high < 0)
    marks["text"] = [
        f"<b>{plain(row.label)}</b><br>{row.centre:+.3g} [{row.low:+.3g}, {row.high:+.3g}]"
        for row in marks.itertuples()
    ]
    figure = _rows(marks, f"{metric.title}: difference from {plain(baseline)}", chosen, False)
    return figure.add_vline(x=0, line={"color": NEUTRAL, "width": 1.5, "dash": "dash"})


def _rows(marks: pd.DataFrame, title: str, chosen: Sequence[Style], logarithmic: bool) -> go.Figure:
    known = marks[["centre", "low", "high"]].to_numpy(float)
    known = known[np.isfinite(known) & ((known > 0) | (not logarithmic))]
    labels = [plain(label) for label in marks.label]
    figure = blank(
        x=title,
        y="",
        height=96 + _ROW * len(marks),
        xaxis=Scale.around(known, logarithmic).axis(),
        yaxis={"type": "category", "categoryarray": labels, "range": [len(labels) - 0.4, -0.6]},
    )
    for number, (row, label) in enumerate(zip(marks.to_dict("records"), labels, strict=True)):
        if np.isfinite(row["centre"]):
            style = chosen[row["config"]]
            figure.add_scatter(
                x=[row["centre"]],
                y=[label],
                error_x=_bars(row["centre"], row["low"], row["high"]),
                mode="markers",
                name=label,
                legendgroup=f"c{row['config']}",
                marker={
                    "color": style.colour,
                    "size": 10,
                    "symbol": style.symbol + ("" if row["solid"] else "-open"),
                },
                customdata=[number],
                text=[row["text"]],
                hovertemplate="%{text}<extra></extra>",
            )
    return figure.update_layout(showlegend=False)


def _bars(centre: float, low: float, high: float) -> dict[str, object]:
    if not np.isfinite(low):
        return {"visible": False}
    return {
        "type": "data",
        "array": [high - centre],
        "arrayminus": [centre - low],
        "thickness": 1.5,
        "width": 5,
    }


def _with_failures(figure: go.Figure, failed: pd.DataFrame) -> go.Figure:
    for label in failed.label:
        figure.add_annotation(
            x=0.01, xref="paper", y=plain(label), text="failed", showarrow=False, xanchor="left"
        )
    return figure
