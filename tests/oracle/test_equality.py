"""The leap engines do what the oracle does, step by step, on random cases."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from tests.oracle.cases import DRAWS
from tests.oracle.client import EARLY_S
from tests.oracle.cluster import Run
from tests.oracle.compare import assert_equal
from tests.oracle.hold import assert_reached, hold_equal, hold_seeds_equal, look_for_a_difference
from tests.oracle.leap import leap
from tests.oracle.regimes import hanging_up_regimes, regimes, sharing_regimes
from tests.oracle.variants import HANGING_UP, SHARING, SPECULATING, WITH_CLIENT

SEEDS = range(300)

EVERYWHERE = {
    "arrivals on a boundary": 100,
    "arrivals at one moment": 1000,
    "outputs of one token": 500,
    "outputs capped": 50,
    "prompts dropped": 50,
    "decodes cross a segment break": 100,
    "blocks of 1": 40,
    "blocks of 16": 40,
    "blocks of 64": 40,
    "2 replicas": 50,
    "3 replicas": 50,
}
CONTINUOUS = {
    **EVERYWHERE,
    "preemptions": 900,
    "cached tokens": 3000,
    "no prefix caching": 80,
    "preempted before token 1": 20,
    "joins between two decode steps": 450,
    "a budget of one token": 20,
    "one sequence": 20,
    "whole prompts only": 40,
}
FLOORS = {
    "continuous": CONTINUOUS,
    "static": {
        **EVERYWHERE,
        "batches started by the timeout": 300,
        "batches shrunk to fit": 100,
        "padded rows": 5000,
    },
    "disaggregated": {
        **CONTINUOUS,
        "token 1 from prefill": 100,
        "token 1 from decode": 100,
        "waits for room or a place to decode": 500,
        "prefill waits for a transfer": 200,
        "preempted in prefill": 30,
    },
}
"""How often, at least, the fixed cases must reach each regime."""


def preemptions(run: Run) -> int:
    """Count the preemptions of a run."""
    return sum(job.preemptions for job in run.finished)


@pytest.mark.parametrize("kind", DRAWS)
def test_fixed_cases_are_equal_and_reach_every_regime(kind: str) -> None:
    reached: Counter[str] = Counter()
    for seed in SEEDS:
        case = DRAWS[kind](Random(seed))
        reached += regimes(case, hold_equal(case))
    assert_reached(reached, FLOORS[kind])
    assert reached["ties"] < len(SEEDS) / 4


@pytest.mark.parametrize("kind", DRAWS)
def test_a_horizon_cuts_both_alike(kind: str) -> None:
    """Steps that the horizon cuts are forgotten, and what had been emitted until then is counted."""
    for seed in range(300, 400):
        random = Random(seed)
        case = DRAWS[kind](random)
        steps = case.simulate().steps
        step = random.choice(steps) if steps else None
        horizon_s = step.start_s + step.duration_s * random.choice((-1e-6, 1e-6, 0.5)) if step else 0.5
        run = case.simulate(horizon_s)
        if not run.ties:
            assert_equal(leap(case, horizon_s), run)


@pytest.mark.parametrize("kind", DRAWS)
def test_random_cases(kind: str) -> None:
    """Hypothesis looks for a case in which they differ, and for many preemptions."""
    look_for_a_difference(DRAWS[kind], 150, "preemptions", preemptions)


@pytest.mark.parametrize("kind", WITH_CLIENT)
def test_a_client_that_waits_for_answers_is_the_same_in_both(kind: str) -> None:
    """A semaphore or users who ramp up and think, API time, and horizons in every third case.

    One beside a step, and one while a request is on its way to the router.
    """
    reached: Counter[str] = Counter()
    for seed in range(200):
        random = Random(seed)
        case = WITH_CLIENT[kind](random)
        run = hold_equal(case)
        if seed % 3 == 0 and run.steps:
            step, job = random.choice(run.steps), random.choice(run.taken)
            horizons_s = [step.start_s + random.choice((-1e-6, 3e-7, 1e-3))]
            if case.sending.api_time_s > EARLY_S:
                horizons_s.append(job.sent_s + 0.45 * case.sending.api_time_s)
            for horizon_s in horizons_s:
                cut = case.simulate(horizon_s)
                if not cut.ties:
                    assert_equal(leap(case, horizon_s), cut)
                reached["on the way"] += len(cut.on_the_way)
        reached["ties"] += run.ties > 0
        reached["held"] += sum(job.sent_s > job.due_s for job in run.taken)
        reached["closed loops"] += case.sending.users is not None
    assert reached["ties"] < 60, reached
    assert reached["held"] > 500, reached
    assert reached["closed loops"] > 60, reached
    assert reached["on the way"] > 20, reached


@pytest.mark.parametrize("kind", WITH_CLIENT)
def test_random_clients(kind: str) -> None:
    """Hypothesis looks for a case with a client in which they differ."""
    look_for_a_difference(WITH_CLIENT[kind], 100)


@pytest.mark.parametrize("kind", SHARING)
def test_requests_that_share_blocks_are_the_same_in_both(kind: str) -> None:
    """System prompts, conversations and branching prompts; horizons in every third case."""
    reached = hold_seeds_equal(SHARING[kind], range(150), lambda case, run: sharing_regimes(run))
    floors = {"found of others": 1000, "found after a preemption": 50, "all but one token found": 10}
    assert_reached(reached, floors)


@pytest.mark.parametrize("kind", SHARING)
def test_random_sharing(kind: str) -> None:
    """Hypothesis looks for a case of shared blocks in which they differ, and for many hits."""
    look_for_a_difference(
        SHARING[kind], 60, "cached tokens", lambda run: sum(job.cached_tokens for job in run.finished)
    )


@pytest.mark.parametrize("kind", SPECULATING)
def test_speculative_decoding_is_the_same_in_both(kind: str) -> None:
    """Drafts of 1 to 9 tokens, right never or always, with and without slots behind; some horizons."""
    reached = hold_seeds_equal(SPECULATING[kind], range(200), regimes)
    floors = {
        "pieces of several tokens": 5000,
        "preemptions": 300,
        "cached tokens": 1000,
        "decodes cross a segment break": 30,
        "joins between two decode steps": 100,
        "whole prompts only": 20,
        "9 tokens drafted": 20,
    }
    assert_reached(reached, floors)
    assert reached["ties"] < 50


@pytest.mark.parametrize("kind", SPECULATING)
def test_random_speculation(kind: str) -> None:
    """Hypothesis looks for a case of speculative decoding in which they differ."""
    look_for_a_difference(SPECULATING[kind], 60, "preemptions", preemptions)


@pytest.mark.parametrize("kind", HANGING_UP)
def test_those_who_hang_up_are_the_same_to_both(kind: str) -> None:
    """Whatever a request is doing at the time; from then on its blocks and its place serve others."""
    reached: Counter[str] = Counter()
    for seed in range(200):
        run = hold_equal(HANGING_UP[kind](Random(seed)))
        reached["ties"] += run.ties > 0
        if not run.ties:
            reached += hanging_up_regimes(run)
    floors = {"waiting": 100, "prefilling": 100, "decoding": 100}
    if kind == "disaggregated":
        floors |= {"between the pools": 100}
    assert_reached(reached, floors)
    assert reached["ties"] < 80, reached


@pytest.mark.slow
@pytest.mark.parametrize("kind", DRAWS)
@pytest.mark.parametrize("part", range(4))
def test_thousands_of_cases(kind: str, part: int) -> None:
    for seed in range(1_000 + 2_000 * part, 3_000 + 2_000 * part):
        hold_equal(DRAWS[kind](Random(seed)))
