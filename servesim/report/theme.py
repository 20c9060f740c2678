"""Colours and templates of all figures, for light and for dark pages.

The colours of data are those of Okabe and Ito, "Color Universal Design" (2008), which people with any of the
common colour-vision deficiencies can tell apart. They are the same on light and dark pages; what changes
is the template: text, axes, grid and background.
"""

from __future__ import annotations

from math import floor, log10
from typing import Any, Literal, NamedTuple

import numpy as np
import plotly.graph_objects as go

Mode = Literal["light", "dark"]

BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
)

#: Palest of the set, so only for areas, and last.
YELLOW = "#F0E442"

#: The colours of series, in the order in which they are given out.
PALETTE = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY)

#: What is not data, such as a limit or a line of equality: visible on light and dark alike.
NEUTRAL = "#8A8F98"

#: Largest over smallest value of a logarithmic axis from which its ticks are powers of ten, or 1, 2 and 5.
_LONG, _SHORT = 150.0, 8.0

#: Multiples of a power of ten that a shorter axis may have ticks at; with fewer of them, Plotly finds others.
_FINE, _FEWEST_TICKS = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0), 3

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"

#: Symbols beside colours, so that series differ without colour, too.
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "x")


class Ink(NamedTuple):
    """The colours of a page in one mode."""

    text: str
    muted: str
    grid: str
    axis: str
    card: str


INKS: dict[Mode, Ink] = {
    "light": Ink("#1f2328", "#59636e", "#e6e8eb", "#9aa2ab", "#ffffff"),
    "dark": Ink("#e6e9ed", "#9da7b3", "#2b3138", "#5c6570", "#171b20"),
}


def colour(index: int) -> str:
    """Return the colour of series ``index``; they repeat after six."""
    return PALETTE[index % len(PALETTE)]


def symbol(index: int) -> str:
    """Return the marker of series ``index``; they repeat after six."""
    return SYMBOLS[index % len(SYMBOLS)]


def faint(hex_colour: str, opacity: float = 0.18) -> str:
    """Return a colour that lets what is behind it through, for bands."""
    red, green, blue = (int(hex_colour[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


def template(mode: Mode) -> go.layout.Template:
    """Return the Plotly template of a mode."""
    ink = INKS[mode]
    axis: dict[str, Any] = {
        "gridcolor": ink.grid,
        "linecolor": ink.axis,
        "zerolinecolor": ink.axis,
        "zeroline": False,
        "showline": True,
        "ticks": "outside",
        "ticklen": 4,
        "tickcolor": ink.axis,
        "automargin": True,
        "title": {"standoff": 8, "font": {"size": 13}},
        "tickfont": {"size": 12},
    }
    return go.layout.Template(
        layout={
            "font": {"family": FONT, "size": 13, "color": ink.text},
            "paper_bgcolor": ink.card,
            "plot_bgcolor": ink.card,
            "colorway": list(PALETTE),
            "xaxis": axis,
            "yaxis": axis,
            "legend": {"bgcolor": "rgba(0,0,0,0)", "font": {"size": 12}},
            "hoverlabel": {
                "bgcolor": ink.card,
                "bordercolor": ink.axis,
                "font": {"family": FONT, "color": ink.text, "size": 12},
                "align": "left",
            },
            "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": ink.axis, "activecolor": ink.text},
            "annotationdefaults": {"font": {"color": ink.muted, "size": 12}},
            "coloraxis": {"colorbar": {"outlinewidth": 0, "thickness": 12, "tickfont": {"size": 11}}},
        }
    )


def blank(*, x: str, y: str, height: int = 380, **layout: Any) -> go.Figure:
    """Return an empty figure with titles of its axes, and its legend above the drawing, where nothing is.

    ``layout`` is added to Plotly's layout.
    """
    figure = go.Figure()
    figure.update_layout(
        template=template("light"),
        height=height,
        margin={"l": 64, "r": 20, "t": 12, "b": 52},
        legend={"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"},
        xaxis={"title": {"text": x}},
        yaxis={"title": {"text": y}},
        hovermode="closest",
    )
    return figure.update_layout(layout)


def logarithmic(*values: Any, **axis: Any) -> dict[str, Any]:
    """Return a logarithmic axis for positive ``values``, with figures written 0.2, 10k or 1M.

    A long axis has a tick at each power of ten, a shorter one at 1, 2 and 5 times it, and one of less than a
    power of ten at more of them, or where they are too few, where Plotly puts them. With an
    ``exponentformat`` of its own it is Plotly that writes the figures.
    """
    known = [float(end(each)) for each in values if np.size(each) for end in (np.min, np.max)]
    ratio = max(known) / min(known) if known else np.inf
    steps = (1.0,) if ratio >= _LONG else (1.0, 2.0, 5.0) if ratio >= _SHORT else _FINE
    ticks = _ticks(min(known), max(known), steps) if known else []
    if ratio < _SHORT:
        ticks = [tick for tick in ticks if min(known) <= tick <= max(known)]
    told: dict[str, Any] = {"nticks": 8, "tickformat": ",~r"}
    if len(ticks) >= _FEWEST_TICKS:
        told = {"tickvals": ticks}
        told |= {} if "exponentformat" in axis else {"ticktext": [figure_of(tick) for tick in ticks]}
    return {"type": "log", "exponentformat": "SI", "minexponent": 0} | told | axis


def _ticks(low: float, high: float, steps: tuple[float, ...]) -> list[float]:
    """Return these multiples of the powers of ten from the one below ``low`` to the one above ``high``."""
    powers = range(floor(log10(low)) - 1, floor(log10(high)) + 2)
    return [float(f"{step}e{power}") for power in powers for step in steps]


def figure_of(value: float) -> str:
    """Return a tick's figure: 0.2, 20, 10k, 1M; what is below a thousandth as Plotly writes it, 20\u00b5."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}" if value >= 1e-3 else f"{value * 1e6:g}\u00b5"


def plain(text: object) -> str:
    """Return text as Plotly shows it literally: it reads some HTML tags and entities otherwise."""
    return str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
