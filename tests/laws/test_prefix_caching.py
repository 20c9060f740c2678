"""Prefix caching changes what a preempted request computes again, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servesim.engine.continuous import Continuous
from tests.costs import AffineStepTime
from tests.laws.cases import Case, cases
from tests.serving import Row, Run, Service, end_s

KINDS = ("continuous", "disaggregated")


def with_caching(case: Case, caching: bool) -> Run:
    """Serve a case with prefix caching on or off."""
    scheduler = replace(case.service.scheduler, enable_prefix_caching=caching)
    return Case(replace(case.service, scheduler=scheduler), case.traffic).serve()


def same(one: Run, other: Run) -> bool:
    """Say whether two runs have left the same bytes."""
    logs = [[log.requests, log.steps, log.gaps] for log in (one.log, other.log)]
    return [rows.tobytes() for rows in logs[0]] == [rows.tobytes() for rows in logs[1]]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(data=st.data())
def test_ample_kv_makes_it_the_same(kind: str, data: st.DataObject) -> None:
    case = data.draw(cases(kind, roomy=True))
    assert same(with_caching(case, True), with_caching(case, False))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60)
@given(data=st.data())
def test_it_is_the_same_until_somebody_is_preempted(kind: str, data: st.DataObject) -> None:
    """Up to the first step that begins with a preemption; without one, to the last byte."""
    case = data.draw(cases(kind))
    on, off = with_caching(case, True), with_caching(case, False)
    preempting = [leap["start_s"] for run in (on, off) for leap in run.leaps if leap["preempted"]]
    if preempting:
        assert ended(on, min(preempting)) == ended(off, min(preempting))
    else:
        assert same(on, off)


def ended(run: Run, by_s: float) -> list[Row]:
    """Return the leaps that have ended by a moment."""
    return [leap for leap in run.leaps if end_s(leap) <= by_s]


def test_chunks_of_long_prompts_are_not_computed_for_nothing() -> None:
    """32 requests of 100 in and 30 out, 200 tokens of KV, chunks of 80 tokens.

    The first chunk of the next prompt is let in and thrown out over and over while another one decodes.
    """
    step_time = AffineStepTime(step_s=0.01, prefill_token_s=1e-3)
    limits = Continuous(max_num_batched_tokens=80, block_size=4)
    case = Case(Service(limits, step_time, kv_blocks=50), ((0.0, 100, 30),) * 32)
    on, off = with_caching(case, True), with_caching(case, False)
    assert computed_tokens(on) < 1.1 * 3200 < 5 * 3200 < computed_tokens(off)
    assert 2 * max(row["finished_s"] for row in on.completed) < max(
        row["finished_s"] for row in off.completed
    )


def computed_tokens(run: Run) -> float:
    """Return the tokens of all chunks."""
    return sum(leap["prefill_tokens"] for leap in run.leaps)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60)
@given(data=st.data())
def test_cached_tokens_are_full_blocks_of_who_was_preempted(kind: str, data: st.DataObject) -> None:
    """At most all but the last token of a request, each time that it was preempted; never without caching."""
    case = data.draw(cases(kind))
    block_size = case.service.scheduler.block_size
    for row in with_caching(case, True).requests:
        longest = row["input_tokens"] + row["output_tokens"] - 2
        assert row["cached_tokens"] % block_size == 0
        assert row["cached_tokens"] <= row["preemptions"] * (longest // block_size) * block_size
    assert not any(row["cached_tokens"] for row in with_caching(case, False).requests)
