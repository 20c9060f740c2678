"""The Pareto front: what nothing else is better than in every respect."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Flags = NDArray[np.bool_]


def dominated(points: ArrayLike, maximise: Sequence[bool]) -> Flags:
    """Tell of each point whether another one is as good on every axis and better on one.

    Equal points do not dominate each other. A point with a NaN is not comparable: it neither dominates nor is
    dominated.

    Args:
        points: one row per point, one column per axis.
        maximise: of each axis, whether more is better.

    Raises:
        ValueError: ``points`` is no table with as many columns as ``maximise`` is long.

    """
    costs = _costs(points, maximise)
    flags = np.zeros(len(costs), dtype=np.bool_)
    for index, cost in enumerate(costs):
        rivals = (costs <= cost).all(axis=1) & (costs < cost).any(axis=1)
        flags[index] = rivals.any()
    return flags


def on_front(points: ArrayLike, maximise: Sequence[bool]) -> Flags:
    """Tell of each point whether it is on the Pareto front: comparable, and not :func:`dominated`."""
    costs = _costs(points, maximise)
    front: Flags = ~dominated(points, maximise) & ~np.isnan(costs).any(axis=1)
    return front


def _costs(points: ArrayLike, maximise: Sequence[bool]) -> NDArray[np.float64]:
    """Return points so that less is better on every axis."""
    table = np.asarray(points, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != len(maximise):
        raise ValueError(f"needs rows of {len(maximise)} numbers, not an array of shape {table.shape}")
    costs: NDArray[np.float64] = np.where(maximise, -table, table)
    return costs
