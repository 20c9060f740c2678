"""Whether a load meets the objective, as all its seeds say together, and up to which load it is met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan, nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

#: Loads without a verdict that are named.
_FEW = 3


def pooled_attainment(attainment: ArrayLike, judged: ArrayLike) -> float:
    """Return the share of the requests of all seeds together that met the SLO; NaN where no seed has one.

    Args:
        attainment: of each seed, NaN where it has none.
        judged: requests of each seed that were judged; where a seed lacks the number, all weigh alike.

    """
    shares, weights = np.asarray(attainment, dtype=np.float64), np.asarray(judged, dtype=np.float64)
    known = ~np.isnan(shares)
    if not known.any():
        return float("nan")
    shares, weights = shares[known], weights[known]
    if not (weights > 0).all():
        weights = np.ones_like(shares)
    return float((shares * weights).sum() / weights.sum())


class Judged(NamedTuple):
    """What the seeds of a load say together.

    Attributes:
        attainment: see :func:`pooled_attainment`; None without an SLO.
        meets: whether it reaches the target, and no seed is saturated; None where nobody can tell: without
            an SLO, where a seed failed, where half of them or more have no steady part, or where it depends
            on requests that were under way when runs were cut.
        settled: whether more than half of the seeds have a steady part.

    """

    attainment: float | None
    meets: bool | None
    settled: bool


def judged(rows: Sequence[Mapping[Any, Any]], whole: bool = True) -> Judged:
    """Return the verdict of the seeds of one load: ``rows`` are the figures of those that did not fail.

    Requests that were turned away, timed out or left over are among those that attainment is the share of, as
    misses: few of them are no reason against a load, and many are a miss. ``whole`` says whether no seed
    failed.
    """
    settled = not rows or 2 * sum(row.get("settled") is False for row in rows) < len(rows)
    shares, counts = (_column(rows, name) for name in ("goodput.attainment", "goodput.judged"))
    attainment = pooled_attainment(shares, counts)
    if isnan(attainment):
        return Judged(None, None, settled)
    target = max(_column(rows, "goodput.target"))
    if any(row.get("saturated") for row in rows):
        return Judged(attainment, False, settled)
    if not (whole and settled) or attainment < target <= attainment + _cut(rows):
        return Judged(attainment, None, settled)
    return Judged(attainment, attainment >= target, settled)


def _cut(rows: Sequence[Mapping[Any, Any]]) -> float:
    """Return the share of the requests judged whose end nobody knows, as their run was cut."""
    cut, asked = (np.nansum(_column(rows, f"goodput.{name}")) for name in ("cut", "judged"))
    return float(cut / asked) if asked else 0.0


def _column(rows: Sequence[Mapping[Any, Any]], name: str) -> list[float]:
    """Return a figure of every row, NaN where there is none."""
    return [nan if row.get(name) is None else float(row[name]) for row in rows]


class Bracket(NamedTuple):
    """Between which loads a configuration ceases to meet the objective; None where none was tried.

    ``untold`` are the loads of which nobody can tell.
    """

    meets: float | None
    misses: float | None
    untold: tuple[float, ...] = ()

    def __str__(self) -> str:
        """Say it in words."""
        return "; ".join(filter(None, (self._ends(), self._untold())))

    def _ends(self) -> str:
        tried = "judged" if self.untold else "tried"
        if self.meets is None and self.misses is None:
            return "" if self.untold else "none tried"
        if self.meets is None:
            return f"misses at {self.misses:g}, the lowest load {tried}"
        if self.misses is None:
            return f"meets up to {self.meets:g}, the highest load {tried}"
        return f"meets up to {self.meets:g}, misses at {self.misses:g}"

    def _untold(self) -> str:
        if len(self.untold) > _FEW:
            return f"no verdict at {len(self.untold)} loads"
        return f"no verdict at {', '.join(f'{load:g}' for load in self.untold)}" if self.untold else ""


def bracket(loads: Sequence[float], meets: Sequence[bool | None]) -> Bracket:
    """Return the lowest load that misses the objective, and the highest below it that meets it.

    Loads of which nobody can tell (None) are neither.
    """
    pairs = sorted(zip(loads, meets, strict=True), key=lambda pair: pair[0])
    missing = next((load for load, met in pairs if met is False), None)
    meeting = [load for load, met in pairs if met and (missing is None or load < missing)]
    untold = tuple(load for load, met in pairs if met is None)
    return Bracket(max(meeting, default=None), missing, untold)
