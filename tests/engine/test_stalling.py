"""Steps of one phase: prompts first, or decodes first."""

from __future__ import annotations

import pytest

from servesim.check import ConfigError, check
from servesim.cluster.disaggregated import Disaggregated
from servesim.engine.continuous import Continuous, PrefillPolicy
from tests.costs import AffineStepTime
from tests.serving import Run, Service

#: A step takes 1 s, and 0.1 s more for each token of a prompt.
STEP_TIME = AffineStepTime(step_s=1.0, prefill_token_s=0.1)
#: A decodes from 2 s on; B comes in its second step, with a prompt of three chunks; C in the first of those.
TRAFFIC = [(0.0, 10, 5), (2.5, 30, 2), (4.5, 10, 2)]


def serve(policy: PrefillPolicy, **limits: int) -> Run:
    limits = {"max_num_batched_tokens": 10, **limits}
    return Service(Continuous(prefill_policy=policy, **limits), STEP_TIME).serve(TRAFFIC)


def told(run: Run) -> list[tuple[float, int, int, int]]:
    """Return when each leap starts, its steps and decodes, and how many of those had waited."""
    names = ("steps", "decodes", "stalled")
    return [(round(row["start_s"], 6), *(int(row[name]) for name in names)) for row in run.leaps]


def test_prompts_first() -> None:
    """A's second token leaves at 3 s; then B has three steps of 2 s and C one, and A gets its third at 12 s.

    The gap before that is 9 s; B has waited 2 s since its first token at 9 s, so its gap is 3 s; C none.
    """
    run = serve("prefill_first")
    assert told(run) == [
        (0.0, 1, 0, 0),
        (2.0, 1, 1, 0),
        (3.0, 1, 0, 0),
        (5.0, 1, 0, 0),
        (7.0, 1, 0, 0),
        (9.0, 1, 0, 0),
        (11.0, 1, 3, 2),
        (12.0, 2, 1, 0),
    ]
    assert [row["first_token_s"] for row in run.by_id] == [2.0, 9.0, 11.0]
    assert [(row["sequences"], row["gap_s"]) for row in run.gaps] == [(1, 3.0), (1, 9.0)]


def test_decodes_first() -> None:
    """B and C wait for the end of A at 6 s; then they are one batch, prefilled before it decodes."""
    run = serve("decode_first")
    assert [row["first_token_s"] for row in run.by_id] == [2.0, 12.0, 14.0]
    assert [row["finished_s"] for row in run.by_id] == [6.0, 15.0, 15.0]
    assert [(row["sequences"], row["gap_s"]) for row in run.gaps] == [(1, 3.0)]


def test_without_stalls_no_decode_waits() -> None:
    """B's prompt has 9 tokens of each step beside A: 1.9 s three times, and the rest beside C's."""
    run = serve("stall_free")
    assert not run.gaps
    assert max(row["first_step_s"] for row in run.leaps if row["decodes"]) == pytest.approx(1.9)


def test_a_step_of_decodes_keeps_to_the_token_budget() -> None:
    """Three that could run at once, and a budget of 2 tokens."""
    run = Service(
        Continuous(prefill_policy="prefill_first", max_num_batched_tokens=2), AffineStepTime(step_s=1.0)
    ).serve([(0.0, 1, 9)] * 3)
    assert max(row["decodes"] for row in run.leaps) == 2


def test_two_pools_have_no_phases_to_separate() -> None:
    with pytest.raises(ConfigError, match="prefill_policy = 'prefill_first': must be stall_free"):
        check(Disaggregated(prefill_policy="prefill_first"))
