"""How the configurations of a sweep are told apart: by colour, symbol and dash."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np
import pandas as pd

from servesim.report.theme import NEUTRAL, PALETTE, SYMBOLS, colour, symbol

#: Configurations that get a style of their own; a seventh colour could not be told from the others.
MOST_STYLES = 12
_DASHES = ("solid", "dash")

_SHAPES = {
    "circle": '<circle cx="22" cy="8" r="5"/>',
    "diamond": '<path d="M22 1.5l6.5 6.5l-6.5 6.5l-6.5-6.5z"/>',
    "square": '<path d="M17 3h10v10h-10z"/>',
    "triangle-up": '<path d="M22 2l6 11h-12z"/>',
    "cross": '<path d="M20 2h4v4h4v4h-4v4h-4v-4h-4v-4h4z"/>',
    "x": '<path d="M18.5 2l3.5 3.5l3.5-3.5l2.5 2.5l-3.5 3.5l3.5 3.5l-2.5 2.5l-3.5-3.5l-3.5 3.5l-2.5-2.5'
    'l3.5-3.5l-3.5-3.5z"/>',
}


class Style(NamedTuple):
    """Colour, marker and dash of a configuration; ``plain``: one of those that only stand behind."""

    colour: str
    symbol: str
    dash: str
    plain: bool = False

    def swatch(self) -> str:
        """Return a line and a marker of the style, as SVG."""
        dash = ' stroke-dasharray="5 3"' if self.dash == "dash" else ""
        line = f'<path d="M0 8h44" stroke="{self.colour}" stroke-width="{1 if self.plain else 2}"{dash}/>'
        head = f'<svg width="44" height="16" aria-hidden="true" fill="{self.colour}">'
        return f"{head}{line}{_SHAPES[self.symbol]}</svg>"


def styles(count: int, first: Sequence[int] = ()) -> list[Style]:
    """Return the style of each of ``count`` configurations.

    Up to MOST_STYLES each has its own, in their order. Of more, those in ``first`` (say, all that reach the
    Pareto front) come first to get one, and the rest are grey.
    """
    order = list(range(count)) if count <= MOST_STYLES else [*dict.fromkeys([*first, *range(count)])]
    own = sorted(order[:MOST_STYLES])
    chosen = {config: _style(index) for index, config in enumerate(own)}
    return [chosen.get(config, Style(NEUTRAL, "circle", "solid", True)) for config in range(count)]


def _style(index: int) -> Style:
    """Return style ``index``: after six, the colours come again with other symbols and dashed."""
    turn = index // len(PALETTE)
    return Style(colour(index), symbol(index + turn * (len(SYMBOLS) // 2)), _DASHES[turn % len(_DASHES)])


def legend(points: pd.DataFrame, chosen: Sequence[Style], bands: bool = True) -> str:
    """Return the legend of all charts as HTML: the key of the states, and a switch per configuration.

    Where there are intervals, a switch shows or hides their bands; ``bands`` says whether they are seen.
    """
    labels = points.groupby("config").label.first().tolist()
    switches = "".join(
        f'<button type="button" aria-pressed="true" data-config="c{config}" title="Click: show or hide; '
        f'double click: only this one">{chosen[config].swatch()}<span>{escape(label)}</span></button>'
        for config, label in enumerate(labels)
    )
    sticky = " sticky" if len(labels) <= MOST_STYLES else ""
    if _has_intervals(points):
        pressed = f'aria-pressed="{str(bands).lower()}" title="Show or hide the intervals"'
        switches += f'<button type="button" id="bands" {pressed}>bands</button>'
    return f'<p class="key">{_key(points)}</p><div class="legend{sticky}" id="legend">{switches}</div>'


def _has_intervals(points: pd.DataFrame) -> bool:
    return bool(np.isfinite(points.filter(like=".low").to_numpy(float)).any())


def _key(points: pd.DataFrame) -> str:
    """Return what the kinds of points look like; only of those that occur."""
    dot = '<svg width="16" height="16" aria-hidden="true"><circle cx="8" cy="8" r="{r}" {how}/></svg>{text}'
    full, ring = 'fill="currentColor"', 'fill="none" stroke="currentColor" stroke-width="1.5"'
    halo = f'<svg width="30" height="16" aria-hidden="true"><path d="M0 8h30" stroke="{NEUTRAL}"'
    whose = "fronts, one for each traffic" if points.traffic.nunique() > 1 else "front"
    halo += f' stroke-width="6" opacity=".45"/></svg>Pareto {whose}, over all configurations'
    rows = [
        halo,
        dot.format(r=5.5, how=full, text="on it"),
        dot.format(r=4, how=f'{full} opacity=".45"', text="dominated"),
    ]
    states = set(points.state)
    if "saturated" in states:
        rows.append(dot.format(r=4.5, how=ring, text="saturated (dotted line)"))
    if "unsettled" in states:
        hole = (
            '<circle cx="8" cy="8" r="5" fill="currentColor"/><circle cx="8" cy="8" r="1.6" fill="Canvas"/>'
        )
        rows.append(f'<svg width="16" height="16" aria-hidden="true">{hole}</svg>unsettled: too short a run')
    if "not clean" in states:
        inner = '<svg width="16" height="16" aria-hidden="true"><circle cx="8" cy="8" r="5" '
        inner += f'{ring}/><circle cx="8" cy="8" r="1.6" {full}/></svg>'
        rows.append(f"{inner}requests lost and the SLO missed, or seeds failed")
    if "failed" in states:
        rows.append("failed: a cross below its load; no line leads through it")
    if _has_intervals(points):
        rows.append("bands: 95% intervals over the seeds")
    return "".join(f"<span>{row}</span>" for row in rows)
