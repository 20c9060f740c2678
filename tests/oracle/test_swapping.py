"""Swapping in the leap engines is what it is in the oracle, step by step, on random cases."""

from __future__ import annotations

import pytest

from tests.oracle.hold import assert_reached, hold_seeds_equal, look_for_a_difference
from tests.oracle.regimes import swapping_regimes
from tests.oracle.variants import SWAPPING

FLOORS = {"swapped out": 80, "host full": 40, "copied back": 80, "found on the GPU": 1}


@pytest.mark.parametrize("kind", SWAPPING)
def test_swapping_is_the_same_in_both(kind: str) -> None:
    """Tight KV and a host with room for all, for some or for none; horizons in every third case."""
    reached = hold_seeds_equal(SWAPPING[kind], range(120), lambda case, run: swapping_regimes(run))
    few = 10 if kind.startswith("hanging up") else 1  # who hangs up takes its load away
    assert_reached(reached, {name: floor // few for name, floor in FLOORS.items()})


@pytest.mark.parametrize("kind", SWAPPING)
def test_random_swapping(kind: str) -> None:
    """Hypothesis looks for a case of swapping in which they differ, and for many swaps."""
    look_for_a_difference(SWAPPING[kind], 40, "swaps", lambda run: len(run.swaps))
