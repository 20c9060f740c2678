"""The knee of a curve: where it turns from one slope to another."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

#: Of the range of the curve: a chord that is nowhere left by more has no knee.
_STRAIGHT = 0.05


def knee(x: ArrayLike, y: ArrayLike) -> int | None:
    """Return the index of the point that is farthest from the chord between the ends; None without a knee.

    Distances are measured along y with both axes scaled to their ranges, as in the Kneedle method (Satopaa,
    Albrecht, Irwin and Raghavan, "Finding a 'Kneedle' in a Haystack", ICDCS Workshops 2011). A curve of fewer
    than three points, or one that stays within 5% of its chord, has none. Points with a NaN are passed
    over; of equal distances the first one counts, in order of x.

    Args:
        x: the load, in any order.
        y: what is measured there.

    """
    horizontal, vertical = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    (known,) = np.nonzero(np.isfinite(horizontal) & np.isfinite(vertical))
    order = known[np.argsort(horizontal[known], kind="stable")]
    if len(order) < 3:
        return None
    across, up = (_scaled(values[order]) for values in (horizontal, vertical))
    if across[-1] == across[0]:
        return None
    chord = up[0] + (up[-1] - up[0]) * across
    distance = np.abs(up - chord)
    farthest = int(np.argmax(distance))
    return int(order[farthest]) if distance[farthest] > _STRAIGHT else None


def _scaled(values: np.ndarray) -> np.ndarray:
    low, high = float(values.min()), float(values.max())
    return np.asarray((values - low) / (high - low) if high > low else np.zeros(len(values)))
