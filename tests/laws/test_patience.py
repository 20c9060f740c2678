"""Patience: what hanging up and trying again do to any service, behind any client."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import isnan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servesim.cluster.admission import QueueLimit, TtftSlo
from servesim.cluster.disaggregated import Disaggregated
from servesim.engine.clock import EARLY_S
from servesim.engine.log import COMPLETED, DROPPED, PROMPT_TOO_LONG, TIMED_OUT
from servesim.workload.arrivals import ClosedLoop
from servesim.workload.client import Client
from tests.laws.cases import KINDS, Case, Draw, cases
from tests.laws.test_client import same
from tests.serving import Row, Run, Service

TIMES_S = (0.01, 0.02, 0.03, 0.05, 0.11, 0.4, 2.0)


@st.composite
def impatient(draw: Draw, kind: str) -> Case:
    """Draw a case whose client hangs up, and may try again, wait for answers or be turned away."""
    case = draw(cases(kind))
    users = draw(st.sampled_from((None, None, ClosedLoop(3))))
    client = Client(
        None if users else draw(st.sampled_from((None, 2))),
        api_time_s=draw(st.sampled_from((0.0, 0.003))),
        timeout_s=draw(st.sampled_from((None, *TIMES_S))),
        ttft_timeout_s=draw(st.sampled_from((None, *TIMES_S))),
        max_retries=draw(st.sampled_from((0, 1, 3))),
        backoff_s=draw(st.sampled_from((0.0, 0.01, 0.3))),
        backoff_jitter=draw(st.sampled_from((0.0, 0.5))),
    )
    admission = draw(st.sampled_from((None, QueueLimit(1), QueueLimit(2, of="pool"), TtftSlo(0.05))))
    return replace(case, service=replace(case.service, client=client, users=users, admission=admission))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60)
@given(data=st.data())
def test_every_attempt_comes_to_one_end_and_every_block_back(kind: str, data: st.DataObject) -> None:
    """And no attempt outlives its time-out, by more than rounding."""
    case = data.draw(impatient(kind))
    run, client = case.serve(), case.service.client
    rows = run.by_id
    assert [row["request_id"] for row in rows] == list(range(run.cluster.injected))
    assert run.client.remaining() == len(run.client.held_due_s) == run.server.unfinished == 0
    for row in rows:
        assert row["status"] in (COMPLETED, DROPPED, TIMED_OUT)
        assert row["status"] != COMPLETED or row["generated"] == row["output_tokens"]
        assert row["status"] == COMPLETED or row["generated"] < row["output_tokens"]
        assert (row["generated"] > 0) == (not isnan(row["first_token_s"]))
        lasted_s = row["finished_s"] - row["sent_s"]
        assert isnan(lasted_s) or lasted_s <= (client.timeout_s or lasted_s) + 2 * EARLY_S
        begun_s = row["first_token_s"] - row["sent_s"]
        assert isnan(begun_s) or begun_s <= (client.ttft_timeout_s or begun_s) + 2 * EARLY_S
    assert [engine.kv.free for engine in run.engines] == [engine.kv.blocks for engine in run.engines]
    assert not any(sum(group._outstanding) for group in run.cluster.groups)
    assert_tried_as_often_as_may_be(rows, case)


def assert_tried_as_often_as_may_be(rows: list[Row], case: Case) -> None:
    """Each failure but the last, and but that of a prompt that is too long, has one successor."""
    most = case.service.client.max_retries
    failures = Counter(
        row["attempt"]
        for row in rows
        if row["status"] != COMPLETED and row["reason"] != PROMPT_TOO_LONG and row["attempt"] < most
    )
    assert Counter(row["attempt"] - 1 for row in rows if row["attempt"]) == failures
    assert sum(row["attempt"] == 0 for row in rows) == len(case.traffic)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(data=st.data())
def test_a_horizon_loses_no_attempt(kind: str, data: st.DataObject) -> None:
    """Attempts are written down, requests held back or not due; and each failure has come to something."""
    case = data.draw(impatient(kind))
    horizon_s = data.draw(st.sampled_from((1e-9, 0.01, 0.0233, 0.05, 0.2, 1.0)))
    run, most = case.serve(horizon_s), case.service.client.max_retries
    rows = run.requests
    assert len(rows) == run.cluster.injected
    first = [row for row in rows if row["attempt"] == 0]
    assert len(first) + len(run.client.held_due_s) + run.client.remaining() == len(case.traffic)
    failed = [row for row in rows if row["status"] in (DROPPED, TIMED_OUT)]
    to_retry = [row for row in failed if row["reason"] != PROMPT_TOO_LONG and row["attempt"] < most]
    pending = getattr(run.server, "retries_pending", 0)
    assert len(to_retry) == len(rows) - len(first) + pending


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=30)
@given(data=st.data())
def test_patience_that_never_ends_is_none(kind: str, data: st.DataObject) -> None:
    """Time-outs nobody reaches, retries nobody needs: the same rows and steps, to the bit."""
    case = data.draw(cases(kind))
    users = data.draw(st.sampled_from((None, ClosedLoop(3))))
    plain = Client(None if users else data.draw(st.sampled_from((None, 2))))
    patient = replace(plain, timeout_s=1e6, ttft_timeout_s=1e5, max_retries=3)
    runs = [replace(case.service, client=one, users=users).serve(case.traffic) for one in (plain, patient)]
    assert same(*runs)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=20)
@given(data=st.data())
def test_one_seed_one_storm(kind: str, data: st.DataObject) -> None:
    case = data.draw(impatient(kind))
    assert same(case.serve(), case.serve())


def tokens(run: Run) -> float:
    """Return how many tokens were emitted in steps."""
    first = sum(not isnan(row["first_token_s"]) for row in run.requests)
    return first + sum(leap["steps"] * leap["decodes"] for leap in run.leaps) + len(run.gaps)


@settings(max_examples=40)
@given(data=st.data())
def test_what_a_client_hears_was_emitted(data: st.DataObject) -> None:
    """All tokens of the steps, but for at most one of each client that hung up."""
    case = data.draw(impatient("continuous"))
    run = case.serve()
    heard = sum(row["generated"] for row in run.requests)
    hung_up = sum(row["status"] == TIMED_OUT for row in run.requests)
    assert heard <= tokens(run) <= heard + hung_up


def test_what_lands_for_nobody_gives_back_the_room_it_had_whatever_came_of_the_next_attempt() -> None:
    """Over a link so slow that the retry has emitted another number of tokens by the time it lands."""
    service = Service(
        Disaggregated(max_num_seqs=1, block_size=1, first_token="prefill"),
        kv_blocks=3,
        decode_blocks=3,
        max_model_len=3,
        bytes_per_s=100.0,
        client=Client(timeout_s=0.01, max_retries=1, backoff_s=0.0),
        users=ClosedLoop(3),
    )
    run = service.serve([(0.0, 1, 2)])
    assert len(run.requests) == 2
    assert [engine.kv.free for engine in run.engines] == [3, 3]
