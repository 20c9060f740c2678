"""Nobody waits for nothing, and no work is done twice or not at all."""

from __future__ import annotations

from itertools import pairwise
from math import ceil, inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servesim.engine.clock import EARLY_S
from servesim.engine.disaggregated import DecodeEngine, PrefillEngine
from servesim.engine.static import StaticEngine
from servesim.workload.request import Request
from tests.laws.cases import KINDS, Case, cases
from tests.serving import Row, Run, end_s, step_starts

EPSILON_S = 1e-9


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(data=st.data())
def test_no_replica_idles_while_it_could_run_a_request(kind: str, data: st.DataObject) -> None:
    """Looked at whenever nothing is going to happen for a while: an idle replica has good reasons."""
    run = data.draw(cases(kind)).open()
    for now in run.instants():
        if run.clock.peek() > now + 3 * EARLY_S:
            for engine in run.engines:
                assert engine.running or has_reason_to_idle(engine, run, now)


def has_reason_to_idle(engine: Any, run: Run, now: float) -> bool:
    """Say whether nothing that waits at a replica could run there, all its slots being empty."""
    if isinstance(engine, StaticEngine):
        oldest_s = engine.waiting[0].sent_s if engine.waiting else inf
        scheduler = run.service.scheduler
        return len(engine.waiting) < scheduler.batch_size and now < oldest_s + scheduler.batch_timeout_s
    if isinstance(engine, DecodeEngine):
        if engine.landed:
            return False
        if engine.incoming and not engine.waiting:
            prompt = engine.incoming[0].input_tokens + engine.incoming[0].generated
            return ceil(prompt / engine.kv.block_size) > engine.kv.free
    return not engine.waiting or not fits(engine.waiting[0], engine)


def fits(head: Request, engine: Any) -> bool:
    """Say whether the blocks are free for the next chunk of a request that holds none, cached ones included.

    A prompt that was thrown out of a prefill replica is let in again only as a whole.
    """
    whole = isinstance(engine, PrefillEngine) and head.preemptions
    cached = engine.kv.cached_tokens(head, engine.kv.free) if head.may_be_cached else 0
    missing = head.missing_tokens() - cached
    tokens = missing if whole else min(missing, engine.token_budget)
    return ceil((cached + tokens) / engine.kv.block_size) <= engine.kv.free


@settings(max_examples=40)
@given(data=st.data())
def test_a_replica_idles_only_when_it_is_empty(data: st.DataObject) -> None:
    """Continuous batching: during a pause between two steps, no request of the replica is in the system."""
    run = data.draw(cases("continuous")).serve()
    for replica in range(run.service.replicas):
        leaps = [leap for leap in run.leaps if leap["replica"] == replica]
        pauses = [(-inf, leaps[0]["start_s"])] if leaps else []
        pauses += [(end_s(before), after["start_s"]) for before, after in pairwise(leaps)]
        for begin_s, over_s in pauses:
            mine = [row for row in run.completed if row["replica"] == replica]
            inside = [
                r
                for r in mine
                if r["sent_s"] < over_s - 3 * EARLY_S and r["finished_s"] > begin_s + EPSILON_S
            ]
            assert over_s - begin_s <= EPSILON_S or not inside


@settings(max_examples=60)
@given(data=st.data())
def test_requests_wait_for_a_full_step_only(data: st.DataObject) -> None:
    """Where KV is not short, every step that starts while a request waits is full of sequences or tokens."""
    case = data.draw(cases("continuous", roomy=True))
    run = case.serve()
    for row in run.completed:
        scheduled_s = row["sent_s"] + row["queue_s"]
        for leap in run.leaps:
            if leap["replica"] == row["replica"]:
                waited = [
                    s for s in step_starts(leap) if row["sent_s"] - EARLY_S <= s < scheduled_s - 3 * EARLY_S
                ]
                assert not waited or is_full(leap, case)


def is_full(leap: Row, case: Case) -> bool:
    """Say whether a step has all the sequences or tokens that it may have; or whole prompts left no room."""
    scheduler = case.service.scheduler
    tokens = leap["decodes"] + leap["prefill_tokens"]
    longest = max(inputs for _, inputs, _ in case.traffic)
    room = 1 if scheduler.enable_chunked_prefill else longest
    return leap["sequences"] == scheduler.max_num_seqs or tokens + room > scheduler.max_num_batched_tokens


@pytest.mark.parametrize("kind", ["continuous", "disaggregated"])
@settings(max_examples=40)
@given(data=st.data())
def test_first_come_first_served(kind: str, data: st.DataObject) -> None:
    """Whoever runs was sent before whoever waits, at every instant, and so in the order of sending.

    Who is preempted is the last who runs, and becomes the first who waits. (A decode pool takes requests in
    the order of their landing.)
    """
    run = data.draw(cases(kind)).open()
    for _ in run.instants():
        for engine in run.engines[: run.service.replicas]:
            order = [request.id for request in (*engine.running, *engine.waiting)]
            assert order == sorted(order)


@pytest.mark.parametrize("kind", ["continuous", "disaggregated"])
@settings(max_examples=40)
@given(data=st.data())
def test_nobody_is_let_in_where_somebody_was_thrown_out(kind: str, data: st.DataObject) -> None:
    """A step that preempted a request computes the decodes that are left, and no prompt, if any is left.

    (The last one in is the first one out: a prompt under way goes before any decode.)
    """
    for leap in data.draw(cases(kind)).serve().leaps:
        assert not (leap["preempted"] and leap["decodes"] and leap["prefill_tokens"])


@pytest.mark.parametrize("kind", ["continuous", "disaggregated"])
@settings(max_examples=40)
@given(data=st.data())
def test_steps_compute_what_requests_need(kind: str, data: st.DataObject) -> None:
    """A request of p + o tokens has p + o - 1 of them computed: its last token is never read.

    With first tokens from the decode pool, the last of the prompt is computed once more. Each preemption
    may cost all that again, less what prefix caching has kept; without any, the sums are equal.
    """
    run = data.draw(cases(kind)).serve()
    computed = sum(leap["steps"] * leap["decodes"] + leap["prefill_tokens"] for leap in run.leaps)
    twice = len([row for row in run.completed if run_again(row, run)])
    needed = sum(row["input_tokens"] + row["generated"] - 1 for row in run.completed) + twice
    lost = sum(row["preemptions"] * (row["input_tokens"] + row["generated"]) for row in run.completed)
    cached = sum(row["cached_tokens"] for row in run.completed)
    assert needed <= computed <= needed + lost - cached
    if not lost:
        assert sum(leap["prefill_tokens"] for leap in run.leaps) == chunk_tokens(run)


def run_again(row: Row, run: Run) -> bool:
    """Say whether the decode pool recomputes the last position of a prompt."""
    return row["prefill_replica"] >= 0 and run.service.scheduler.first_token == "decode"


def chunk_tokens(run: Run) -> float:
    """Return the tokens of all prompts, and the one with which a request begins on another pool."""
    handed_over = sum(row["prefill_replica"] >= 0 and row["replica"] >= 0 for row in run.completed)
    return sum(row["input_tokens"] for row in run.completed) + handed_over


@settings(max_examples=40)
@given(data=st.data())
def test_static_batches_compute_every_row_to_the_end(data: st.DataObject) -> None:
    """A batch of n rows, longest prompt P, longest output O: n P prompt tokens, n (O - 1) decodes.

    The rows that count as decodes are those with tokens to come: sum of (o - 1) over the members.
    """
    run = data.draw(cases("static")).serve()
    for replica in range(run.service.replicas):
        leaps = [leap for leap in run.leaps if leap["replica"] == replica]
        starts = [leap["start_s"] for leap in leaps if leap["prefill_tokens"]] + [inf]
        for start_s, next_s in pairwise(starts):
            members = [row for row in run.completed if belongs(row, replica, start_s)]
            mine = [leap for leap in leaps if start_s <= leap["start_s"] < next_s]
            longest = max(row["output_tokens"] for row in members)
            assert {leap["sequences"] for leap in mine} == {len(members)}
            assert mine[0]["prefill_tokens"] == len(members) * max(row["input_tokens"] for row in members)
            assert sum(leap["steps"] for leap in mine) == longest
            assert sum(leap["steps"] * leap["decodes"] for leap in mine) == sum(
                row["output_tokens"] - 1 for row in members
            )


def belongs(row: Row, replica: int, start_s: float) -> bool:
    """Say whether a request is a member of the batch that a replica started at ``start_s``."""
    return row["replica"] == replica and abs(row["sent_s"] + row["queue_s"] - start_s) <= 2 * EARLY_S
