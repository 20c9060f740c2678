"""Whether a load meets the objective, as all its seeds say together, and up to which load it is met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan, nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike


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
        meets: whether it reaches the target, all seeds being clean, none saturated and most of them settled;
            None without an SLO.
        settled: whether more than half of the seeds have a steady part, so that there is a verdict at all.

    """

    attainment: float | None
    meets: bool | None
    settled: bool


def judged(rows: Sequence[Mapping[Any, Any]], clean: bool) -> Judged:
    """Return the verdict of the seeds of one load: ``rows`` are the figures of those that did not fail.

    ``clean`` says whether every seed ran and lost no request.
    """
    settled = not rows or 2 * sum(row.get("settled") is False for row in rows) < len(rows)
    shares, counts = (_column(rows, name) for name in ("goodput.attainment", "goodput.judged"))
    attainment = pooled_attainment(shares, counts)
    if isnan(attainment):
        return Judged(None, None, settled)
    calm = clean and settled and not any(row.get("saturated") for row in rows)
    targets = _column(rows, "goodput.target")
    return Judged(attainment, calm and attainment >= max(targets), settled)


def _column(rows: Sequence[Mapping[Any, Any]], name: str) -> list[float]:
    """Return a figure of every row, NaN where there is none."""
    return [nan if row.get(name) is None else float(row[name]) for row in rows]


class Bracket(NamedTuple):
    """Between which loads a configuration ceases to meet the objective; None where none was tried."""

    meets: float | None
    misses: float | None

    def __str__(self) -> str:
        """Say it in words."""
        if self.meets is None and self.misses is None:
            return "none tried"
        if self.meets is None:
            return f"misses at {self.misses:g}, the lowest load tried"
        if self.misses is None:
            return f"meets up to {self.meets:g}, the highest load tried"
        return f"meets up to {self.meets:g}, misses at {self.misses:g}"


def bracket(loads: Sequence[float], meets: Sequence[bool]) -> Bracket:
    """Return the lowest load that misses the objective, and the highest below it that meets it."""
    pairs = sorted(zip(loads, meets, strict=True))
    missing = next((load for load, met in pairs if not met), None)
    meeting = [load for load, met in pairs if met and (missing is None or load < missing)]
    return Bracket(max(meeting, default=None), missing)
