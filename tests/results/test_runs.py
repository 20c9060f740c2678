"""Runs of equidistant values: what lies below a limit, between two, and in all."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from servesim.results.runs import Runs, spread
from servesim.results.totals import totals

GRID = st.integers(0, 40).map(lambda n: n * 0.25)


def one(first: float, increment: float, start: int, stop: int, weight: int = 1) -> Runs:
    return Runs(*(np.array([x]) for x in (first, increment, start, stop, weight)))


@given(GRID, GRID | st.floats(0, 1e-3), st.integers(0, 5), st.integers(1, 50), GRID | st.floats(0, 20))
def test_places_below_counts_the_values_below(
    first: float, increment: float, start: int, places: int, limit: float
) -> None:
    run = one(first, increment, start, start + places)
    below = sum(first + place * increment < limit for place in range(start, start + places))
    assert run.places_below(limit).tolist() == [start + below]


def test_between_keeps_the_lower_end_and_leaves_out_the_upper() -> None:
    """0, 1, ..., 9 between 3 and 7 are 3, 4, 5, 6; nothing of it lies between 20 and 30."""
    run = one(0.0, 1.0, 0, 10, 2)
    values, weights = run.between(3.0, 7.0).expanded()
    assert values.tolist() == [3.0, 4.0, 5.0, 6.0]
    assert weights.tolist() == [2, 2, 2, 2]
    assert len(run.between(20.0, 30.0).first) == 0


def test_spread_numbers_the_items_of_each_owner() -> None:
    owner, offset = spread(np.array([2, 0, 3]))
    assert owner.tolist() == [0, 0, 2, 2, 2]
    assert offset.tolist() == [0, 1, 0, 1, 2]


def test_totals_keep_their_digits_beside_a_large_offset() -> None:
    """1e6 + (0, 1e-3, ..., 9e-3): the variance of ten equidistant values is d^2 (n^2 - 1) / 12."""
    found = totals(lambda: iter([one(1e6, 1e-3, 0, 10)]))
    assert abs(found.std - 1e-3 * np.sqrt(99 / 12)) < 1e-10
    assert (found.values, found.places, found.lowest) == (10, 10, 1e6)
