"""Swapping in the leap engines is what it is in the oracle, step by step, on random cases."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import assume, given, settings, target
from hypothesis import strategies as st

from tests.oracle.cases import SWAPPING, Case
from tests.oracle.compare import assert_equal
from tests.oracle.leap import leap
from tests.oracle.regimes import swapping_regimes
from tests.oracle.test_equality import hold_equal

FLOORS = {"swapped out": 80, "host full": 40, "copied back": 80, "found on the GPU": 1}


@pytest.mark.parametrize("kind", SWAPPING)
def test_swapping_is_the_same_in_both(kind: str) -> None:
    """Tight KV and a host with room for all, for some or for none; horizons in every third case."""
    reached: Counter[str] = Counter()
    for seed in range(120):
        random = Random(seed)
        case = SWAPPING[kind](random)
        run = hold_equal(case)
        if seed % 3 == 0 and run.steps:
            horizon_s = random.choice(run.steps).start_s + random.choice((-1e-6, 3e-7, 1e-3))
            cut = case.simulate(horizon_s)
            if not cut.ties:
                assert_equal(leap(case, horizon_s), cut)
        reached += swapping_regimes(run)
    few = 10 if kind.startswith("hanging up") else 1  # who hangs up takes its load away
    missed = {name: reached[name] for name, floor in FLOORS.items() if reached[name] < floor // few}
    assert not missed, reached


@pytest.mark.parametrize("kind", SWAPPING)
def test_random_swapping(kind: str) -> None:
    """Hypothesis looks for a case of swapping in which they differ, and for many swaps."""

    @given(st.randoms(use_true_random=False).map(SWAPPING[kind]))
    @settings(max_examples=40)
    def differ_nowhere(case: Case) -> None:
        run = hold_equal(case)
        target(float(len(run.swaps)), label="swaps")
        assume(not run.ties)

    differ_nowhere()
