"""Clients: what a semaphore, API time, ramps and thinking do to any service."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import isnan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servesim.engine.clock import EARLY_S
from servesim.engine.log import COMPLETED, RUNNING
from servesim.workload.arrivals import ClosedLoop
from servesim.workload.client import Client
from tests.costs import constant_step
from tests.laws.cases import KINDS, Case, cases
from tests.serving import Row, Run, Service

LIMITS = st.sampled_from((1, 2, 3, 5))
API_TIMES_S = st.sampled_from((0.0, 1e-8, 0.003, 0.01, 0.25))
EXACT_S = 1e-9
STEADY = Service(step_time=constant_step(1.0))


def served(case: Case, client: Client, users: ClosedLoop | None = None, **options: float) -> Run:
    return replace(case.service, client=client, users=users).serve(case.traffic, **options)  # type: ignore[arg-type]


def burst_of(case: Case) -> Case:
    """Return the requests that are not dropped, all at once: a refusal at 0 is heard within the burst."""
    fit = [row for row in case.traffic if row[1] < case.service.max_model_len]
    return replace(case, traffic=tuple((0.0, *tokens) for _, *tokens in fit))


def without(rows: list[Row], *names: str) -> list[Row]:
    return [{name: value for name, value in row.items() if name not in names} for row in rows]


def same(one: Run, other: Run, *but: str) -> bool:
    """Say whether two runs have the same steps and requests, to the bit, ``but`` for some fields."""
    rows = [[str(without(run.requests, *but)), str(run.leaps), str(run.gaps)] for run in (one, other)]
    return rows[0] == rows[1]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=30)
@given(data=st.data())
def test_a_semaphore_that_never_binds_is_none(kind: str, data: st.DataObject) -> None:
    case, api_time_s = data.draw(cases(kind)), data.draw(API_TIMES_S)
    free = served(case, Client(api_time_s=api_time_s))
    bound = served(case, Client(len(case.traffic), api_time_s=api_time_s))
    assert same(free, bound)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=30)
@given(data=st.data())
def test_a_burst_behind_a_semaphore_is_a_closed_loop(kind: str, data: st.DataObject) -> None:
    """Request by request: when each is sent, and all that becomes of it."""
    case, limit, api_time_s = burst_of(data.draw(cases(kind))), data.draw(LIMITS), data.draw(API_TIMES_S)
    burst = served(case, Client(limit, api_time_s=api_time_s))
    closed = served(case, Client(api_time_s=api_time_s), ClosedLoop(limit))
    assert same(burst, closed, "due_s")
    assert all(row["due_s"] == 0.0 for row in burst.requests)
    assert all(row["due_s"] == row["sent_s"] for row in closed.requests)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(data=st.data())
def test_no_more_than_the_limit_are_unanswered_and_all_end(kind: str, data: st.DataObject) -> None:
    """Whether a semaphore holds requests back or users send them; and whoever was due first is sent first."""
    case, limit, api_time_s = data.draw(cases(kind)), data.draw(LIMITS), data.draw(API_TIMES_S)
    users = data.draw(st.sampled_from((None, ClosedLoop(limit, 0.03, 0.01))))
    run = served(case, Client(None if users else limit, api_time_s=api_time_s), users)
    assert [row["request_id"] for row in run.by_id] == list(range(len(case.traffic)))
    assert run.client.remaining() == len(run.client.held_due_s) == run.cluster.unfinished == 0
    assert most_unanswered(run) <= limit
    rows = run.by_id
    assert all(a["sent_s"] <= b["sent_s"] + 2 * EARLY_S for a, b in pairwise(rows))
    for row in rows:
        assert row["due_s"] <= row["sent_s"]
        assert row["arrived_s"] - row["sent_s"] == pytest.approx(api_time_s, abs=EXACT_S)


def most_unanswered(run: Run) -> int:
    """Return how many requests were under way at a time; an answer makes room for the next at its instant."""
    sent = [(row["sent_s"], 1) for row in run.requests]
    answered = [
        (row["finished_s"] if row["status"] == COMPLETED else row["arrived_s"] - EARLY_S, -1)
        for row in run.requests
    ]
    return int(np.max(np.cumsum([step for _, step in sorted(sent + answered)])))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=30)
@given(data=st.data())
def test_what_is_held_back_is_sent_when_an_answer_makes_room(kind: str, data: st.DataObject) -> None:
    """A client is idle only where it has nothing to send: work is conserved in front of the cluster, too."""
    case, limit = data.draw(cases(kind)), data.draw(LIMITS)
    run = served(case, Client(limit))
    ends = {row["finished_s"] for row in run.completed}
    dropped = [row["arrived_s"] for row in run.requests if row["status"] != COMPLETED]
    for row in run.by_id:
        if row["sent_s"] > row["due_s"] and not dropped:
            assert row["sent_s"] in ends


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(data=st.data())
def test_a_horizon_loses_no_request_of_a_client(kind: str, data: st.DataObject) -> None:
    """Each is written down, or is held back in the client, or its time has not come."""
    case, limit = data.draw(cases(kind)), data.draw(LIMITS)
    client = Client(limit, api_time_s=data.draw(API_TIMES_S))
    horizon_s = data.draw(st.sampled_from((1e-9, 0.01, 0.0233, 0.05, 0.2, 1.0)))
    users = data.draw(st.sampled_from((None, ClosedLoop(limit), ClosedLoop(limit, 0.03, 0.01))))
    run = served(case, replace(client, max_concurrency=None) if users else client, users, horizon_s=horizon_s)
    assert len(run.requests) == run.cluster.injected
    assert len(run.requests) + len(run.client.held_due_s) + run.client.remaining() == len(case.traffic)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(data=st.data())
def test_whatever_is_due_by_the_horizon_is_injected_or_held(kind: str, data: st.DataObject) -> None:
    """One that is still on its way to the router runs, and nothing of it has happened but its sending."""
    case, limit = data.draw(cases(kind)), data.draw(st.one_of(st.none(), LIMITS))
    horizon_s = data.draw(st.sampled_from((0.0, 1e-9, 0.01, 0.0233, 0.05, 0.2, 1.0)))
    api_time_s = data.draw(API_TIMES_S)
    run = served(case, Client(limit, api_time_s=api_time_s), horizon_s=horizon_s)
    due = sum(due_s - EARLY_S <= horizon_s for due_s, *_ in case.traffic)
    assert run.cluster.injected + len(run.client.held_due_s) == due
    assert run.client.remaining() == len(case.traffic) - due
    for row in run.requests:
        if isnan(row["arrived_s"]):
            assert row["status"] == RUNNING
            assert row["sent_s"] - EARLY_S <= horizon_s < row["sent_s"] + api_time_s
            assert row["generated"] == 0
            assert isnan(row["queue_s"])


@pytest.mark.parametrize("users", [None, ClosedLoop(3), ClosedLoop(4, ramp_up_s=0.01)])
@pytest.mark.parametrize("limit", [None, 2])
def test_api_time_beyond_the_horizon_leaves_all_that_was_sent_on_its_way(
    users: ClosedLoop | None, limit: int | None
) -> None:
    """Three users or more, or six requests at 0, of which a semaphore lets two go."""
    case = Case(service=STEADY, traffic=((0.0, 1, 2),) * 6)
    client = Client(None if users else limit, api_time_s=5.0)
    run = served(case, client, users, horizon_s=4.0)
    sent = users.concurrency if users else limit or 6
    assert [(row["status"], row["sent_s"] < 0.01) for row in run.requests] == [(RUNNING, True)] * sent
    assert (run.cluster.injected, run.leaps) == (sent, [])


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(data=st.data())
def test_api_time_comes_on_top_of_a_lone_request(kind: str, data: st.DataObject) -> None:
    """Its TTFT and E2E grow by just that, and it keeps its other parts."""
    case, api_time_s = data.draw(cases(kind, roomy=True)), data.draw(API_TIMES_S)
    lone = replace(case, traffic=case.traffic[:1])
    (plain,), (delayed,) = (served(lone, Client(api_time_s=wait_s)).requests for wait_s in (0.0, api_time_s))
    for moment in ("first_token_s", "finished_s", "arrived_s"):
        assert delayed[moment] - plain[moment] == pytest.approx(api_time_s, abs=EXACT_S)
    for part in ("queue_s", "prefill_s", "preempted_s", "transfer_s"):
        assert delayed[part] == pytest.approx(plain[part], abs=EXACT_S)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=20)
@given(data=st.data())
def test_api_time_delays_an_open_loop_as_a_whole(kind: str, data: st.DataObject) -> None:
    """As if everything had been sent later: nobody waits for answers."""
    case, api_time_s = data.draw(cases(kind)), data.draw(API_TIMES_S)
    later = tuple((sent_s + api_time_s, *tokens) for sent_s, *tokens in case.traffic)
    assert same(
        served(case, Client(api_time_s=api_time_s)), served(replace(case, traffic=later), Client()),
        "sent_s", "due_s",
    )  # fmt: skip


def test_users_begin_evenly_over_the_ramp_and_think_between_requests() -> None:
    """Four users over 8 s; each answer takes 2 s, and is thought over for 3."""
    case = Case(service=STEADY, traffic=((0.0, 1, 2),) * 8)
    run = served(case, Client(), ClosedLoop(4, ramp_up_s=8.0, think_time_s=3.0))
    sent = [row["sent_s"] for row in run.by_id]
    assert sent == pytest.approx([0.0, 2.0, 4.0, 5.0, 6.0, 7.0, 9.0, 10.0], abs=1e-6)
