"""A target for steps: what it keeps, what it costs nobody, and that nothing hangs for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servesim.check import ConfigError, check, problems
from servesim.cluster.disaggregated import Disaggregated
from servesim.cost.speculation import Ngram
from servesim.engine.continuous import Continuous
from servesim.engine.offload import Medium, Offload
from servesim.engine.queue_order.priority import Priority
from servesim.workload.arrivals import Poisson
from servesim.workload.lengths import Geometric
from servesim.workload.synthetic import Synthetic
from tests.costs import AffineStepTime
from tests.laws.cases import Case, cases
from tests.serving import Row, Run, Service

#: A step of 8 decodes lasts 18 ms or more, and 100 tokens of prompts 10 ms.
STEP_TIME = AffineStepTime(
    step_s=0.01, sequence_s=1e-3, context_s=1e-6, prefill_token_s=1e-4, cached_token_s=1e-6
)
BUSY = Synthetic(Poisson(4.0), Geometric(200.0, 60.0), requests=150)
TARGETS_S = st.sampled_from((1e-9, 0.0101, 0.0115, 0.02, 0.024, 0.05))


def targeted(case: Case, target_s: float | None) -> Case:
    assert isinstance(case.service.scheduler, Continuous)
    limits = {"enable_chunked_prefill": True, "step_target_s": target_s}
    return replace(case, service=replace(case.service, scheduler=replace(case.service.scheduler, **limits)))


def served(target_s: float | None) -> Run:
    return Service(Continuous(step_target_s=target_s), STEP_TIME).serve(BUSY)


def with_prompts(run: Run) -> Iterator[Row]:
    """Yield the steps that have prompts."""
    yield from (leap for leap in run.leaps if leap["prefill_tokens"])


@settings(max_examples=60)
@given(case=cases("continuous"))
def test_a_target_that_never_binds_is_none(case: Case) -> None:
    """To the byte."""
    plain, free = targeted(case, None).serve(), targeted(case, 1e9).serve()
    for rows in ("requests", "steps", "gaps"):
        assert getattr(plain.log, rows).tobytes() == getattr(free.log, rows).tobytes()


@settings(max_examples=60)
@given(case=cases("continuous"), target_s=TARGETS_S)
def test_no_step_with_decodes_and_prompts_lasts_longer(case: Case, target_s: float) -> None:
    """One without decodes may for a single token; and all that is sent comes to an end."""
    run = targeted(case, target_s).serve()
    for leap in with_prompts(run):
        assert leap["first_step_s"] <= target_s or (leap["decodes"], leap["prefill_tokens"]) == (0, 1)
    assert len(run.requests) == len(case.traffic)
    assert run.cluster.unfinished == 0


def test_a_target_is_made_use_of() -> None:
    """A step that leaves part of a prompt behind has no time for another token of it."""
    target_s, token_s = 0.03, STEP_TIME.prefill_token_s
    full = [
        leap for leap in with_prompts(served(target_s)) if leap["first_step_s"] > target_s - 1.01 * token_s
    ]
    assert len(full) > 100


@pytest.mark.parametrize("sequences", [0, 1, 5])
def test_a_smaller_target_never_makes_a_step_longer(sequences: int) -> None:
    """Beside the same decodes, and with as many tokens or fewer."""
    least_s, steps = 0.01 + 1e-3 * sequences, []
    for more_s in (1e-4, 1.5e-4, 1e-3, 1.1e-3, 0.02, 0.1, 10.0, None):
        target_s = None if more_s is None else least_s + more_s + 1e-9
        service = Service(Continuous(step_target_s=target_s), AffineStepTime(0.01, 1e-3, 0.0, 1e-4))
        run = Run(service, ((0.0, 1, 50),) * sequences)
        run.clock.run_until(0.3)
        (engine,) = run.engines
        assert engine.decodes.count == sequences
        steps.append(engine.full_step())
    assert steps == sorted(steps)
    assert [tokens for _, tokens in steps[:5]] == [1, 1, 10, 11, 200]


def test_decodes_are_served_steadily_for_later_first_tokens() -> None:
    plain, kept = served(None), served(0.022)
    longest_s = [max(leap["first_step_s"] for leap in with_prompts(run)) for run in (plain, kept)]
    assert longest_s[1] <= 0.022 < longest_s[0]
    late_s = [sum(run.column("first_token_s") - run.column("sent_s")) for run in (plain, kept)]
    assert late_s[0] < late_s[1]


def test_what_a_target_does_not_go_with_is_refused_in_one_sentence() -> None:
    drafts, order = Ngram(num_speculative_tokens=2, acceptance=0.5), Priority(preempt=True)
    for scheduler, words in (
        (Continuous(step_target_s=0.1, enable_chunked_prefill=False), "enable_chunked_prefill=true"),
        (Continuous(step_target_s=0.1, prefill_policy="prefill_first"), "prefill_policy=stall_free"),
        (Continuous(step_target_s=0.1, queue_order=order), "queue_order.preempt=false"),
        (Continuous(step_target_s=0.1, speculation=drafts, max_num_seqs=8), "scheduler/speculation=none"),
        (Continuous(step_target_s=0.1, offload=Offload(Medium(1.0))), "scheduler/offload=none"),
        (Disaggregated(step_target_s=0.1), "do not share steps"),
        (Continuous(step_target_s=0.0), "must be above 0"),
    ):
        found = [problem for problem in problems(scheduler) if problem.path == "step_target_s"]
        assert [words in problem.message for problem in found] == [True]
    with pytest.raises(ConfigError, match="enable_chunked_prefill=true and prefill_policy=stall_free"):
        check(Continuous(step_target_s=1.0, enable_chunked_prefill=False, prefill_policy="prefill_first"))
