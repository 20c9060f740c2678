"""Every queue order and prefill policy does what the oracle does, which looks at everybody in every step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.oracle.cases import Case
from tests.oracle.cluster import Run
from tests.oracle.compare import assert_blocks_returned, assert_equal
from tests.oracle.leap import leap
from tests.oracle.variants import HANGING_UP_IN_ORDER, IN_ORDER, IN_PHASES


def hold_equal(case: Case) -> Run:
    """Run a case both ways and assert that nothing differs, to its end and cut in the middle."""
    want = case.simulate()
    if not want.ties:
        got = leap(case)
        assert_equal(got, want)
        assert_blocks_returned(got, want, case.capacities)
        if want.finished:
            horizon_s = want.finished[len(want.finished) // 2].finished_s - 1e-3
            cut = case.simulate(horizon_s)
            if not cut.ties:
                assert_equal(leap(case, horizon_s), cut)
    return want


def overtaken(run: Run) -> int:
    """Count the requests that were scheduled before one that had come to their replica before them."""
    seen: Counter[int] = Counter()
    for job in sorted(run.finished, key=lambda job: job.scheduled_s):
        place = job.replica if job.prefill_replica < 0 else job.prefill_replica
        seen["overtaken"] += job.id < seen[place]
        seen[place] = max(seen[place], job.id)
    return seen["overtaken"]


@pytest.mark.parametrize("kind", IN_ORDER)
def test_queue_orders(kind: str) -> None:
    """A fixed set of cases, in which orders other than that of coming, and preemptions, are common."""
    reached: Counter[str] = Counter()
    for seed in range(100):
        run = hold_equal(IN_ORDER[kind](Random(seed)))
        reached["overtaken"] += overtaken(run)
        reached["preemptions"] += sum(job.preemptions for job in run.finished)
        reached["cached tokens"] += sum(job.cached_tokens for job in run.finished)
    assert min(reached["overtaken"], reached["preemptions"], reached["cached tokens"]) > 100, reached


@pytest.mark.parametrize("kind", IN_PHASES)
def test_prefill_policies(kind: str) -> None:
    """A fixed set of cases, in which decodes wait for prompts, and are preempted behind them."""
    reached: Counter[str] = Counter()
    for seed in range(120):
        case = IN_PHASES[kind](Random(seed))
        run = hold_equal(case)
        reached["preemptions"] += sum(job.preemptions for job in run.finished)
        reached["stalled"] += sum(int(row["stalled"]) for row in leap(case).leaps)
    assert min(reached.values()) > 150, reached


@pytest.mark.parametrize("kind", HANGING_UP_IN_ORDER)
def test_clients_that_hang_up(kind: str) -> None:
    """A fixed set of cases, in which requests are given up while they wait, stall or decode."""
    hung_up = sum(len(hold_equal(HANGING_UP_IN_ORDER[kind](Random(seed))).hung_up) for seed in range(80))
    assert hung_up > 100


@pytest.mark.parametrize("draw", [*IN_ORDER.values(), IN_PHASES["in order"]])
def test_random_cases(draw: Callable[[Random], Case]) -> None:
    """Hypothesis looks for a case in which they differ."""

    @given(st.randoms(use_true_random=False).map(draw))
    @settings(max_examples=40)
    def differ_nowhere(case: Case) -> None:
        assume(not hold_equal(case).ties)

    differ_nowhere()
