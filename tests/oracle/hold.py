"""Holds the leap engines equal to the oracle: on a case, on seeded ones, and on those that are looked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

from hypothesis import assume, given, settings, target
from hypothesis import strategies as st

from tests.oracle.cases import Case
from tests.oracle.cluster import Run
from tests.oracle.compare import assert_blocks_returned, assert_equal
from tests.oracle.leap import leap

Draw = Callable[[Random], Case]


def hold_equal(case: Case) -> Run:
    """Run both on a case and hold them equal, unless rounding decides between replicas."""
    run = case.simulate()
    if not run.ties:
        got = leap(case)
        assert_equal(got, run)
        assert_blocks_returned(got, run, case.capacities)
    return run


def hold_seeds_equal(
    draw: Draw, seeds: range, regimes_of: Callable[[Case, Run], Counter[str]]
) -> Counter[str]:
    """Hold both equal on a case of each seed, every third one cut by a horizon, too; count the regimes."""
    reached: Counter[str] = Counter()
    for seed in seeds:
        random = Random(seed)
        case = draw(random)
        run = hold_equal(case)
        if seed % 3 == 0 and run.steps:
            horizon_s = random.choice(run.steps).start_s + random.choice((-1e-6, 3e-7, 1e-3))
            cut = case.simulate(horizon_s)
            if not cut.ties:
                assert_equal(leap(case, horizon_s), cut)
        reached += regimes_of(case, run)
    return reached


def look_for_a_difference(
    draw: Draw, examples: int, label: str = "", score: Callable[[Run], int] | None = None
) -> None:
    """Let hypothesis look for a case in which they differ, and for a high ``score``, if there is one."""

    @given(st.randoms(use_true_random=False).map(draw))
    @settings(max_examples=examples)
    def differ_nowhere(case: Case) -> None:
        run = hold_equal(case)
        if score is not None:
            target(float(score(run)), label=label)
        assume(not run.ties)

    differ_nowhere()


def assert_reached(reached: Counter[str], floors: dict[str, int]) -> None:
    """Assert that each regime was reached so often at least."""
    missed = {name: reached[name] for name, floor in floors.items() if reached[name] < floor}
    assert not missed, reached
