"""The table of a study's README, made from the table of its sweep."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import isnan
from typing import Any

import numpy as np
import pandas as pd

from servesim.frontier.intervals import paired_difference
from servesim.frontier.replications import settings
from servesim.report.frontier.page import Drawing
from servesim.report.frontier.points import CLEAN, short_names, written
from servesim.report.metrics import GOODPUT, metric
from servesim.screen.figures import number, signed

Row = Mapping[Hashable, Any]

_SHORT = {"tpot_s": "TPOT limit (s)", "rate_rps": "requests/s", "concurrency": "users"}


def table(drawing: Drawing, columns: Sequence[str], difference: str = "") -> str:
    """Return the rows that answer a study, in Markdown.

    Where the load found itself, that is one row per configuration: the load with the most goodput, and up to
    which load the SLO was met with every seed, with the next one that was tried. Else all points have a row.

    Args:
        drawing: of the sweep.
        columns: figures, with 95% intervals over the seeds.
        difference: the figure that is compared with the baseline of the study, paired by seed: at the same
            load, or where it found itself, each at its own. Empty: there is no such column.

    """
    declared = drawing.sweep.declared_load
    rows = _rows(drawing)
    keys = _keys(drawing)
    cells = {_heading(name): [written(row[key]) for row in rows] for key, name in short_names(keys).items()}
    words = len(cells)
    if declared:
        cells[_heading(declared.rpartition(".")[2])] = [written(row["load"]) for row in rows]
        cells["SLO met with every seed up to (next tried)"] = [_bracket(drawing.points, row) for row in rows]
    for column in columns:
        cells[metric(column).title] = [_figure(row, column) for row in rows]
    if difference:
        heading = f"{metric(difference).name}: difference from {drawing.sweep.baseline}"
        cells[heading] = [_difference(drawing, row, rows, difference) for row in rows]
    ruler = "|" + "---|" * words + "--:|" * (len(cells) - words)
    return "\n".join([_line(cells), ruler, *map(_line, zip(*cells.values(), strict=True))])


def _rows(drawing: Drawing) -> list[Row]:
    """Return the points to show: all, or of each configuration the one with the surest goodput.

    That is the one whose 95% interval of goodput has the highest lower end: beyond it single seeds break
    down. A saturated point counts only where there is no other: its goodput is that of the length of the run.
    """
    points = drawing.points
    if drawing.sweep.declared_load:
        surest = points[f"{GOODPUT.column}.low"].fillna(points[GOODPUT.column]).fillna(-1.0)
        surest = surest.where(points.state == CLEAN, -np.inf)
        points = points.loc[surest.groupby(points.config).idxmax()]
    return points.to_dict("records")


def _keys(drawing: Drawing) -> list[str]:
    """Return what tells the rows apart: the variant, and axes with several values."""
    several = [key for key in settings(drawing.sweep.table) if drawing.points[key].nunique(dropna=False) > 1]
    return [key for key in several if key != drawing.sweep.declared_load]


def _bracket(points: pd.DataFrame, row: Row) -> str:
    """Return the loads of a configuration between which the SLO begins to be missed."""
    own = points[points.config == row["config"]]
    within = own.load[(own.state == CLEAN) & (own.met == own.seeds)]
    beyond = own.load[own.load > within.max()] if len(within) else own.load
    met = written(within.max()) if len(within) else "none"
    return f"{met} ({written(beyond.min())})" if len(beyond) else met


def _figure(row: Row, column: str) -> str:
    mean, low, high = (metric(column).scale * row[f"{column}{end}"] for end in ("", ".low", ".high"))
    if isnan(mean):
        return "-"
    if isnan(low) or low == high:
        return number(mean)
    return f"{number(mean)} ± {number(max(high - mean, mean - low))}"  # that of a share ends at 0 and at 100


def _difference(drawing: Drawing, row: Row, rows: Sequence[Row], column: str) -> str:
    """Return how far a row is from that of the baseline with the same axes."""
    axes = [key for key in _keys(drawing) if key != "variant"]
    base = [
        other
        for other in rows
        if other["variant"] == drawing.sweep.baseline and all(other[key] == row[key] for key in axes)
    ]
    if row["variant"] == drawing.sweep.baseline or not base:
        return ""
    ours, theirs = (_by_seed(drawing.sweep.table, each, column) for each in (row, base[0]))
    found = paired_difference(*(metric(column).scale * side for side in (ours, theirs)))
    if found.mean == found.low == found.high == 0.0:
        return "0"
    return f"{signed(found.mean)} [{signed(found.low)}, {signed(found.high)}]"


def _by_seed(sweep: pd.DataFrame, row: Row, column: str) -> np.ndarray:
    own = np.logical_and.reduce([sweep[key] == row[key] for key in settings(sweep)])
    return sweep[own].sort_values("seed")[column].to_numpy(dtype=np.float64)


def _heading(name: str) -> str:
    return _SHORT.get(name, name.replace("_", " "))


def _line(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"
