"""Nothing is lost: every request comes to one end, and every KV block is either free or held."""

from __future__ import annotations

from math import isnan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servesim.engine.clock import EARLY_S
from servesim.engine.log import COMPLETED, DROPPED, QUEUED, RUNNING
from tests.laws.cases import KINDS, Case, cases
from tests.laws.holdings import held_blocks
from tests.serving import Row, Run, end_s, step_starts

HORIZONS_S = st.sampled_from((1e-9, 0.01, 0.0233, 0.05, 0.2, 1.0, 1.07, 3.0))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(data=st.data())
def test_every_request_completes_or_is_dropped(kind: str, data: st.DataObject) -> None:
    case = data.draw(cases(kind))
    run = case.serve()
    longest = case.service.max_model_len
    assert [row["request_id"] for row in run.by_id] == list(range(len(case.traffic)))
    assert run.cluster.injected == len(case.traffic)
    assert run.client.remaining() == run.cluster.unfinished == 0
    for row, (sent_s, inputs, outputs) in zip(run.by_id, case.traffic, strict=True):
        assert (row["sent_s"], row["input_tokens"]) == (sent_s, inputs)
        assert row["status"] == (DROPPED if inputs >= longest else COMPLETED)
        assert row["generated"] == (0 if inputs >= longest else min(outputs, longest - inputs))
    capped = [inputs < longest < inputs + outputs for _, inputs, outputs in case.traffic]
    assert run.cluster.length_capped == sum(capped)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(data=st.data())
def test_a_horizon_loses_no_request(kind: str, data: st.DataObject) -> None:
    """Whatever was sent by the horizon is written down once; the rest is counted as not sent."""
    case, horizon_s = data.draw(cases(kind)), data.draw(HORIZONS_S)
    run = case.serve(horizon_s)
    sent = [sent_s for sent_s, _, _ in case.traffic if sent_s - EARLY_S <= horizon_s]
    assert [row["request_id"] for row in run.by_id] == list(range(len(sent)))
    assert run.cluster.injected == len(sent)
    assert run.client.remaining() == len(case.traffic) - len(sent)
    for row in run.requests:
        assert row["status"] in (COMPLETED, DROPPED, RUNNING, QUEUED)
        assert (row["status"] == COMPLETED) == (row["finished_s"] <= horizon_s)
        assert row["status"] != RUNNING or row["generated"] < row["output_tokens"]
        assert row["status"] != QUEUED or (isnan(row["queue_s"]) and row["generated"] == 0)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(data=st.data())
def test_a_horizon_changes_nothing_before_it(kind: str, data: st.DataObject) -> None:
    """The steps that end by the horizon, the tokens they emit, the requests they finish: as without one."""
    case, horizon_s = data.draw(cases(kind)), data.draw(HORIZONS_S)
    whole, cut = case.serve(), case.serve(horizon_s)
    assert cut.completed == [row for row in whole.completed if row["finished_s"] <= horizon_s]
    ended = [step for step in steps(whole) if step[2] <= horizon_s]
    assert sorted(steps(cut)) == sorted(ended)
    assert cut.gaps == [row for row in whole.gaps if row["end_s"] <= horizon_s]


def steps(run: Run) -> list[tuple[float, ...]]:
    """Return (replica, start, end, rows) of each step."""
    return [
        (leap["replica"], start_s, end_s(leap, number + 1), leap["sequences"], leap["decodes"])
        for leap in run.leaps
        for number, start_s in enumerate(step_starts(leap))
    ]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60)
@given(data=st.data())
def test_every_block_is_free_or_held(kind: str, data: st.DataObject) -> None:
    """At every instant, the free blocks and those that a recount finds with requests are all there are."""
    case = data.draw(cases(kind))
    run = case.open()
    for _ in run.instants():
        for engine in run.engines:
            assert 0 <= engine.kv.free <= engine.kv.blocks
            assert engine.kv.free + held_blocks(engine, run.seen) == engine.kv.blocks
    assert [engine.kv.free for engine in run.engines] == [engine.kv.blocks for engine in run.engines]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(data=st.data())
def test_what_a_step_reads_lies_in_blocks(kind: str, data: st.DataObject) -> None:
    """No more blocks are held than there are; a step reads no more tokens than they have room for.

    And in a leap, whose sequences hold no block without need, n (B - 1) places at most are empty: every
    sequence has one block of B tokens that is not full. (A static batch holds room for what is to come.)
    """
    case = data.draw(cases(kind))
    size = case.service.scheduler.block_size
    run = case.serve()
    blocks = [engine.kv.blocks for engine in run.engines]
    for leap in run.leaps:
        assert max(leap["kv_blocks"], leap["kv_blocks_last"]) <= blocks[int(leap["replica"])]
        last = leap["context_tokens"] + leap["sequences"] * (leap["steps"] - 1)
        assert leap["context_tokens"] <= size * leap["kv_blocks"]
        assert last <= size * leap["kv_blocks_last"]
        if kind == "continuous" and alone(leap, case):
            assert size * leap["kv_blocks"] <= leap["context_tokens"] + leap["sequences"] * (size - 1)
            assert size * leap["kv_blocks_last"] <= last + leap["sequences"] * (size - 1)


def alone(leap: Row, case: Case) -> bool:
    """Say whether no prompt lies half computed beside a step's sequences, for want of budget."""
    return leap["decodes"] + leap["prefill_tokens"] < case.service.scheduler.max_num_batched_tokens
