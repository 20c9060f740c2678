"""The figures of a profile's page, each from the scored rows of one operation (see ``scored.py``)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from calibration.fit.job import Array
from calibration.report.operations import Axis
from calibration.report.scored import judged
from servesim.report.theme import (
    BLUE,
    NEUTRAL,
    ORANGE,
    blank,
    colour,
    faint,
    logarithmic,
    plain,
    symbol,
    template,
)
from servesim.report.thin import thinned

#: Points of one drawing: more would weigh on the page and hide each other.
MOST_POINTS = 3000

#: Where the colours of a map of errors end, in %.
WORST_SHADE = 30

#: Microseconds of a second.
MICRO = 1e6

QUANTILES = (0.1, 0.5, 0.9)


def drawn(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of which points are drawn: judged ones, at most MOST_POINTS, by a hash of the shape."""
    return thinned(judged(rows), MOST_POINTS, ["format", "shape"])


def error_percent(rows: pd.DataFrame, predicted: str) -> Array:
    """Return predicted / measured - 1 in percent."""
    errors: Array = (100 * (rows[predicted] / rows.measured_s - 1)).to_numpy()
    return errors


def overview(errors: pd.DataFrame) -> go.Figure:
    """Return the mean errors (%) of fits and of the datasheet: columns ``fit``, ``form``, ``datasheet``."""
    figure = blank(
        x="Mean size of the error (%)",
        y="",
        height=90 + 24 * len(errors),
        xaxis={"type": "log", "tickvals": [1, 2, 5, 10, 20, 50, 100]},
        yaxis={"type": "category", "autorange": "reversed"},
    )
    names = [plain(name) for name in errors.fit]
    for name, form, datasheet in zip(names, errors.form, errors.datasheet, strict=True):
        figure.add_scatter(
            x=[form, datasheet],
            y=[name, name],
            mode="lines",
            line={"color": faint(NEUTRAL, 0.5), "width": 2},
            showlegend=False,
            hoverinfo="skip",
        )
    for name, column, hue, mark in (
        ("fitted form", "form", BLUE, "circle"),
        ("datasheet roofline", "datasheet", ORANGE, "diamond"),
    ):
        figure.add_scatter(
            x=errors[column].to_numpy(),
            y=names,
            mode="markers",
            name=name,
            marker={"color": hue, "symbol": mark, "size": 9},
            hovertemplate="%{y}: %{x:.1f}%<extra>" + name + "</extra>",
        )
    return figure


def predicted_against_measured(rows: pd.DataFrame) -> go.Figure:
    """Return the points of :func:`drawn` around the line of equality."""
    shown = drawn(rows)
    times_s = shown[["measured_s", "predicted_s"]].to_numpy()
    ends = [MICRO * times_s.min(), MICRO * times_s.max()]
    figure = blank(
        x="Measured (µs)",
        y="Predicted (µs)",
        height=420,
        xaxis=logarithmic(ends),
        yaxis=logarithmic(ends),
    )
    for index, (name, part) in enumerate(shown.groupby("format", sort=False)):
        figure.add_scatter(
            x=MICRO * part.measured_s.to_numpy(),
            y=MICRO * part.predicted_s.to_numpy(),
            mode="markers",
            name=plain(name),
            marker={"color": colour(index), "symbol": symbol(index), "size": 5, "opacity": 0.7},
            text=[plain(text) for text in part["shape"]],
            hovertemplate="%{text}<br>measured %{x:,.4r} µs, predicted %{y:,.4r} µs"
            "<extra>%{fullData.name}</extra>",
        )
    figure.add_scatter(
        x=ends,
        y=ends,
        mode="lines",
        name="equal",
        line={"color": NEUTRAL, "width": 1.5, "dash": "dash"},
        hoverinfo="skip",
    )
    return figure


def error_by_size(rows: pd.DataFrame, size: Axis, predicted: str) -> go.Figure:
    """Return median and 10th to 90th percentile of the error by the size's power of two.

    ``predicted`` is the column of times that are judged.
    """
    figure = blank(
        x=size.title,
        y="Predicted / measured - 1 (%)",
        xaxis=logarithmic(rows["size"]),
        yaxis={"zeroline": True, "zerolinewidth": 1},
    )
    for index, (name, part) in enumerate(judged(rows).groupby("format", sort=False)):
        table = _quantiles(part, predicted)
        hue, x = colour(index), table.index.to_numpy(float)
        figure.add_scatter(
            x=np.concatenate([x, x[::-1]]),
            y=np.concatenate([table.high, table.low[::-1]]),
            fill="toself",
            mode="none",
            fillcolor=faint(hue),
            hoverinfo="skip",
            legendgroup=str(name),
            showlegend=False,
        )
        figure.add_scatter(
            x=x,
            y=table["median"].to_numpy(),
            mode="lines+markers",
            name=plain(name),
            legendgroup=str(name),
            line={"color": hue, "width": 2},
            marker={"symbol": symbol(index), "size": 6},
            customdata=table[["low", "high", "n"]].to_numpy(),
            hovertemplate="around %{x:,.0f}: median %{y:+.1f}%, 10th to 90th percentile "
            "%{customdata[0]:+.1f} to %{customdata[1]:+.1f}%, %{customdata[2]:,.0f} rows"
            "<extra>%{fullData.name}</extra>",
        )
    return figure


def _quantiles(rows: pd.DataFrame, predicted: str) -> pd.DataFrame:
    """Return low, median, high (%) and n of the errors by the nearest power of two of the size."""
    errors = pd.Series(error_percent(rows, predicted)).groupby(2.0 ** powers(rows["size"]))
    table = errors.quantile(list(QUANTILES)).unstack()
    table.columns = ["low", "median", "high"]
    return table.assign(n=errors.size())


def powers(sizes: pd.Series) -> Array:
    """Return the power of two nearest to each size on a logarithmic scale."""
    found: Array = np.round(np.log2(sizes.to_numpy(float))).astype(int)
    return found


def error_map(rows: pd.DataFrame, across: Axis, up: Axis) -> go.Figure:
    """Return for each format a map of the median size of the error over two sizes, by powers of two."""
    parts = list(rows.groupby("format", sort=False))
    figure = make_subplots(
        rows=1,
        cols=len(parts),
        shared_yaxes=True,
        horizontal_spacing=0.02,
        subplot_titles=[plain(name) for name, _ in parts],
        x_title=across.title,
    )
    every = {name: range(powers(rows[name]).min(), powers(rows[name]).max() + 1) for name in ("up", "across")}
    for column, (name, part) in enumerate(parts, start=1):
        table, count = (
            _cells(part).agg(kind).unstack().reindex(every["up"], columns=every["across"])
            for kind in ("median", "size")
        )
        figure.add_heatmap(
            z=table.to_numpy(float),
            x=[_short(2.0**power) for power in table.columns],
            y=[_short(2.0**power) for power in table.index],
            customdata=count.to_numpy(float),
            coloraxis="coloraxis",
            hoverongaps=False,
            hovertemplate="%{x} across, %{y} up: %{z:.1f}%, %{customdata:,.0f} rows<extra>"
            + plain(name)
            + "</extra>",
            row=1,
            col=column,
        )
    figure.update_xaxes(type="category", showgrid=False, tickangle=0, nticks=max(4, 24 // len(parts)))
    figure.update_yaxes(type="category", showgrid=False)
    figure.update_yaxes(title_text=up.title, col=1)
    figure.update_annotations(font_size=13)
    figure.update_layout(
        template=template("light"),
        height=400,
        margin={"l": 80, "r": 20, "t": 32, "b": 60},
        coloraxis={
            "colorscale": "Cividis",
            "cmin": 0,
            "cmax": WORST_SHADE,
            "colorbar": {"title": {"text": "%"}, "ticksuffix": ""},
        },
    )
    return figure


def _cells(rows: pd.DataFrame) -> Any:
    """Group the sizes of the errors (%) by powers of two, up and across."""
    errors = pd.Series(np.abs(error_percent(rows, "predicted_s")))
    return errors.groupby([pd.Series(powers(rows[name]), name=name) for name in ("up", "across")])


def _short(size: float) -> str:
    """Return a power of two as people write it: 512, 4k, 16M."""
    for unit, letter in ((2.0**30, "G"), (2.0**20, "M"), (2.0**10, "k")):
        if size >= unit:
            return f"{size / unit:g}{letter}"
    return f"{size:g}"


def roofline_points(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the points of :func:`drawn` as :func:`servesim.report.roofline.roofline` takes them."""
    shown = drawn(rows)
    return pd.DataFrame(
        {
            "series": shown.format,
            "intensity": shown.flops / shown.moved_bytes,
            "flops_per_s": shown.flops / shown.measured_s,
            "text": shown["shape"],
        }
    )


def bandwidth_reached(rows: pd.DataFrame, limit: float, size: Axis) -> go.Figure:
    """Return the bytes per second of an operation that only moves bytes, below the datasheet's ``limit``."""
    shown = drawn(rows)
    figure = blank(
        x=size.title,
        y="Reached (bytes/s per GPU)",
        height=420,
        xaxis=logarithmic(shown["size"]),
        yaxis=logarithmic(shown.moved_bytes / shown.measured_s),
    )
    for index, (name, part) in enumerate(shown.groupby("format", sort=False)):
        figure.add_scatter(
            x=part["size"].to_numpy(),
            y=(part.moved_bytes / part.measured_s).to_numpy(),
            mode="markers",
            name=plain(name),
            marker={"color": colour(index), "symbol": symbol(index), "size": 6, "opacity": 0.7},
            text=[plain(text) for text in part["shape"]],
            hovertemplate="%{text}<br>%{y:.3s}B/s<extra>%{fullData.name}</extra>",
        )
    figure.add_scatter(
        x=[shown["size"].min(), shown["size"].max()],
        y=[limit, limit],
        mode="lines",
        name=f"datasheet: {limit / 1e9:,.0f} GB/s",
        line={"color": NEUTRAL, "width": 2},
        hoverinfo="skip",
    )
    return figure
