"""Steps of a given length are put together as the oracle does, which tries every number of tokens."""

from __future__ import annotations

from collections import Counter

import pytest

from servesim.workload.origin import ANYWHERE, Origin
from tests.costs import AffineStepTime
from tests.oracle.cases import Case, PooledCase
from tests.oracle.client import Sending
from tests.oracle.cluster import Run
from tests.oracle.continuous import Continuous
from tests.oracle.hold import assert_reached, hold_equal, hold_seeds_equal, look_for_a_difference
from tests.oracle.variants import TARGETED


def regimes(case: Case, run: Run) -> Counter[str]:
    """Count what a target does: chunks it has cut, prompts that wait, and steps that it cannot keep."""
    assert isinstance(case, PooledCase)
    target_s, budget = case.limits["step_target_s"], case.limits["max_num_batched_tokens"]
    mixed = [step for step in run.steps if step.prefill_tokens]
    return Counter(
        {
            "cut": sum(
                0 < step.prefill_tokens < budget - step.decodes and step.decodes > 0 for step in mixed
            ),
            "waits": sum(step.waiting > 0 and not step.prefill_tokens for step in run.steps),
            "late": sum(step.duration_s > target_s for step in mixed),
            "preemptions": sum(job.preemptions for job in run.finished),
            "found": sum(job.cached_tokens > 0 for job in run.finished),
        }
    )


@pytest.mark.parametrize("kind", TARGETED)
def test_steps_of_a_given_length(kind: str) -> None:
    """A fixed set of cases, in which the target binds, often together with blocks."""
    reached = hold_seeds_equal(TARGETED[kind], range(150), regimes)
    floors = {"cut": 300, "waits": 300, "late": 30, "preemptions": 15}
    assert_reached(reached, floors | ({"found": 30} if "sharing" in kind or "order" in kind else {}))


def test_a_prompt_comes_in_when_it_has_lost_what_took_time() -> None:
    """The last one finds 8 tokens, with which a step lasts too long, until the first has grown into them."""
    shared, other = Origin(prefix=((0, 8),)), Origin(prefix=((1, 12),))
    case = PooledCase(
        Continuous,
        ((0.0, 4, 26), (0.1, 9, 1), (2.0, 13, 1), (8.0, 9, 1)),
        AffineStepTime(step_s=1.0, prefill_token_s=0.1, cached_token_s=0.5),
        {"max_num_seqs": 8, "max_num_batched_tokens": 64, "block_size": 4, "step_target_s": 3.0},
        kv_blocks=8,
        max_model_len=32,
        replicas=1,
        rule="round_robin",
        sending=Sending(origins=(ANYWHERE, shared, other, shared)),
    )
    waited = [step for step in hold_equal(case).steps if step.waiting]
    assert [(step.decodes, step.prefill_tokens) for step in waited] == [(1, 0)] * 3


@pytest.mark.parametrize("kind", ["sharing", "in order"])
def test_random_cases(kind: str) -> None:
    """Hypothesis looks for a case in which they differ."""
    look_for_a_difference(TARGETED[kind], 40)
