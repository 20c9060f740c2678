"""Amounts that accrue over stretches of time, by equal bins of time: what is in is out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from servesim.results.runs import spread

Floats = NDArray[np.float64]

#: Bins of a drawing over time: a bin is two to four pixels wide.
BINS = 300


def edges(start_s: float, end_s: float, bins: int = BINS) -> Floats:
    """Return the edges of equal bins; of a run without any length, one bin of a second."""
    if end_s <= start_s:
        return np.array([start_s, start_s + 1.0])
    return np.linspace(start_s, end_s, bins + 1)


def binned(starts_s: Any, ends_s: Any, amounts: Any, at: Floats) -> Floats:
    """Return the amount in each bin, of amounts that accrue evenly from start to end.

    The total is kept for stretches inside the edges; what lies beyond them does not count. A stretch of no
    length falls into the bin that it lies in.

    Args:
        starts_s: when each stretch begins, in seconds.
        ends_s: when it ends.
        amounts: what accrues over it.
        at: edges of the bins, equally far apart.
    """
    starts, ends, owed = (np.asarray(each, dtype=float) for each in (starts_s, ends_s, amounts))
    bins, width = len(at) - 1, (at[-1] - at[0]) / (len(at) - 1)
    first, last = (
        np.clip(np.floor((each - at[0]) / width), 0, bins - 1).astype(np.int64) for each in (starts, ends)
    )
    owner, place = spread(last - first + 1)
    into = first[owner] + place
    length = ends - starts
    overlap = np.minimum(ends[owner], at[into + 1]) - np.maximum(starts[owner], at[into])
    inside = (starts >= at[0]) & (starts <= at[-1])
    share = np.where(
        length[owner] > 0,
        np.maximum(overlap, 0) / np.where(length > 0, length, 1)[owner],
        inside[owner] & (place == 0),
    )
    amounts_in: Floats = np.bincount(into, weights=owed[owner] * share, minlength=bins).astype(float)
    return amounts_in


def steps_line(at: Floats, values: Sequence[float] | Floats) -> tuple[Floats, Floats]:
    """Return x and y of a line that is level within each bin (drawn with the shape ``hv``)."""
    levels = np.asarray(values, dtype=float)
    return at, np.append(levels, levels[-1])
