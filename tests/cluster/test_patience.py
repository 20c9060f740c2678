"""Hanging up and trying again. Every step takes 1 s; a request of n output tokens takes n steps."""

from __future__ import annotations

from itertools import pairwise
from math import isnan
from typing import Any

import pytest

from servesim.cluster.admission import QueueLimit
from servesim.cluster.disaggregated import Disaggregated
from servesim.engine.clock import EARLY_S
from servesim.engine.continuous import Continuous
from servesim.engine.log import COMPLETED, DROPPED, QUEUE_FULL, QUEUED, RUNNING, TIMED_OUT
from servesim.engine.static import Static
from servesim.workload.arrivals import ClosedLoop
from servesim.workload.client import Client
from tests.costs import constant_step
from tests.serving import Row, Run, Sent, Service

HAIR_S = 4 * EARLY_S
ONE_AT_A_TIME = Continuous(max_num_seqs=1, block_size=4)


def serve(*requests: Sent, horizon_s: float | None = None, **options: Any) -> Run:
    """Serve requests one at a time; options are the client's, but for a few of the service's."""
    service = {name: options.pop(name) for name in ("users", "admission", "scheduler") if name in options}
    scheduler = service.pop("scheduler", ONE_AT_A_TIME)
    whole = Service(scheduler, constant_step(1.0), client=Client(**options), **service)
    return whole.serve(requests, horizon_s=horizon_s)


def told(rows: list[Row], *names: str) -> list[tuple[float, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


# ---- time-outs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheduler", [ONE_AT_A_TIME, Static(batch_size=1, batch_timeout_s=0.0)])
def test_an_answer_that_ends_with_the_time_is_in_time(scheduler: Any) -> None:
    in_time, late = (serve((0.5, 8, 3), timeout_s=s, scheduler=scheduler).requests for s in (3.0, 2.9999))
    assert told(in_time, "status", "generated") == [(COMPLETED, 3)]
    assert told(late, "status", "generated", "first_token_s") == [(TIMED_OUT, 2, 1.5)]
    assert late[0]["finished_s"] == pytest.approx(3.4999)


def test_a_running_request_makes_room_at_the_next_boundary() -> None:
    """The first is given up at 2.5, in its third step; the second begins at 3, and has its token at 4."""
    first, second = serve((0.0, 8, 9), (1.75, 8, 1), timeout_s=2.5).by_id
    assert (first["status"], first["generated"], first["finished_s"]) == (TIMED_OUT, 2, 2.5)
    assert (second["status"], second["queue_s"], second["finished_s"]) == (COMPLETED, 1.25, 4.0)


def test_a_waiting_request_leaves_the_queue_at_once() -> None:
    """The second of three is not there any more when the first ends at 4, so that the third is next."""
    first, second, third = serve((0.0, 8, 4), (0.0, 8, 9), (1.0, 8, 1), ttft_timeout_s=3.5).by_id
    assert (first["status"], third["status"]) == (COMPLETED, TIMED_OUT)
    assert isnan(second["queue_s"])
    assert third["queue_s"] == pytest.approx(3.0)


def test_the_first_token_has_a_limit_of_its_own() -> None:
    """The first has token 1 at 1 s, and takes as long as it likes; the second would have it at 6 s."""
    first, second = serve((0.0, 8, 5), (0.0, 8, 5), ttft_timeout_s=2.0).by_id
    assert told([first, second], "status", "generated") == [(COMPLETED, 5), (TIMED_OUT, 0)]


def test_a_static_batch_computes_the_row_of_one_that_hung_up() -> None:
    """Two of a batch: the longer is given up at 3.5, and the batch lasts to its end at 6 all the same."""
    batches = Static(batch_size=2, batch_timeout_s=0.0)
    run = serve((0.0, 8, 6), (0.0, 8, 2), (0.1, 8, 1), timeout_s=3.5, scheduler=batches)
    assert told(run.by_id, "status", "generated") == [(TIMED_OUT, 3), (COMPLETED, 2), (TIMED_OUT, 0)]
    assert sum(leap["steps"] for leap in run.leaps) == 6


def test_what_is_on_a_link_travels_on() -> None:
    """20 bytes from 1 to 3 s: given up at 2 s, it holds its blocks at both ends until 3 s, and no longer."""
    scheduler = Disaggregated(max_num_seqs=4, block_size=4)
    run = Run(
        Service(
            scheduler,
            constant_step(1.0),
            decode_step_time=constant_step(1.0),
            bytes_per_s=10.0,
            client=Client(timeout_s=2.0),
            kv_blocks=9,
            decode_blocks=9,
        ),
        [(0.0, 20, 5)],
    )
    run.clock.run_until(2.9)
    assert [row["status"] for row in run.requests] == [TIMED_OUT]
    assert [engine.kv.free for engine in run.engines] == [4, 4]
    run.finish()
    assert [engine.kv.free for engine in run.engines] == [9, 9]
    assert run.clock.now == pytest.approx(3.0, abs=HAIR_S)


# ---- retries ---------------------------------------------------------------------------------------


def test_each_wait_is_a_multiple_of_the_one_before() -> None:
    """Nobody can answer within 0.5 s: sent at 0, then 2, 4 and 8 s after each failure."""
    run = serve((0.0, 8, 9), timeout_s=0.5, max_retries=3, backoff_s=2.0, backoff_factor=2.0)
    assert told(run.requests, "request_id", "attempt", "status") == [(i, i, TIMED_OUT) for i in range(4)]
    assert [row["sent_s"] for row in run.requests] == [0.0, 2.5, 7.0, 15.5]
    assert {row["due_s"] for row in run.requests} == {0.0}


def test_jitter_cuts_waits_short_from_a_stream_of_its_own() -> None:
    run = serve(
        (0.0, 8, 9), timeout_s=0.5, max_retries=60, backoff_s=2.0, backoff_factor=1.0, backoff_jitter=0.5
    )
    sent_s = [row["sent_s"] for row in run.requests]
    waits_s = [later - earlier - 0.5 for earlier, later in pairwise(sent_s)]
    assert 1.0 <= min(waits_s) < 1.1
    assert 1.9 < max(waits_s) <= 2.0
    assert sum(waits_s) / len(waits_s) == pytest.approx(1.5, abs=0.1)


def test_api_time_passes_anew_for_each_attempt() -> None:
    run = serve((0.0, 8, 9), timeout_s=0.5, api_time_s=0.25, max_retries=1, backoff_s=2.0)
    assert told(run.requests, "sent_s", "arrived_s") == [(0.0, 0.25), (2.5, 2.75)]


def test_one_that_was_turned_away_tries_again_and_one_that_never_fits_does_not() -> None:
    """One runs to 4 s, one waits; the third is turned away at 1 and at 2, and finds nobody there at 6."""
    patience = {"max_retries": 2, "backoff_s": 1.0, "backoff_factor": 4.0}
    run = serve((0.0, 8, 4), (0.5, 8, 1), (1.0, 8, 1), admission=QueueLimit(1), **patience)
    ends = [(row["attempt"], row["status"], row["reason"]) for row in run.by_id[2:]]
    assert ends == [(0, DROPPED, QUEUE_FULL), (1, DROPPED, QUEUE_FULL), (2, COMPLETED, 0)]
    assert [row["sent_s"] for row in run.by_id[2:]] == [1.0, 2.0, 6.0]
    long = Service(client=Client(max_retries=3), max_model_len=8).serve([(0.0, 8, 1)])
    assert len(long.requests) == 1


def test_a_user_hears_of_the_last_attempt_only() -> None:
    """Nobody is answered: one user, two attempts of 0.5 s with 1 s between them, then the next request."""
    run = serve(*[(0.0, 8, 9)] * 2, users=ClosedLoop(1), timeout_s=0.5, max_retries=1)
    sent = told(run.requests, "attempt", "sent_s")
    assert sent == [(0, 0.0), (1, 1.5), (0, pytest.approx(2.0)), (1, pytest.approx(3.5))]


def test_a_client_hears_of_its_own_request_what_the_last_attempt_has_come_to() -> None:
    """The third is turned away at 0.5 s, comes again at 4.25 s and is served from 5 s on."""
    client = Client(max_retries=1, backoff_s=3.75)
    service = Service(ONE_AT_A_TIME, constant_step(1.0), client=client, admission=QueueLimit(1))
    run = Run(service, [(0.0, 8, 4), (0.25, 8, 1), (0.5, 8, 2)])
    heard: list[tuple[float, int, float]] = []
    run.server.on_leave = lambda request: heard.append((request.due_s, request.generated, request.finished_s))
    run.finish()
    assert heard == [(0.0, 4, 4.0), (0.25, 1, 5.0), (0.5, 2, 7.0)]


def test_a_place_behind_a_semaphore_is_held_between_attempts() -> None:
    run = serve(*[(0.0, 8, 9)] * 2, max_concurrency=1, timeout_s=0.5, max_retries=1)
    assert [row["sent_s"] for row in run.requests] == [0.0, 1.5, pytest.approx(2.0), pytest.approx(3.5)]


def test_a_horizon_between_two_attempts() -> None:
    """At 1 s the retry is to come at 1.5 s; at 1.6 s it is on its way, and runs; at 1.8 s it has arrived."""
    options = {"timeout_s": 0.5, "api_time_s": 0.2, "max_retries": 1, "backoff_s": 1.0}
    for horizon_s, pending, last in ((1.0, 1, TIMED_OUT), (1.6, 0, RUNNING), (1.8, 0, RUNNING)):
        run = serve((0.0, 8, 9), (0.0, 8, 9), horizon_s=horizon_s, **options)
        assert run.server.retries_pending == 2 * pending
        assert run.requests[-1]["status"] in (last, QUEUED)
        assert len(run.requests) == run.cluster.injected == 4 - 2 * pending


def test_a_retry_finds_what_is_left_of_its_prompt() -> None:
    """Its 40 tokens take five steps: given up in the last, it leaves all its blocks, and one is not found."""
    slow = Continuous(max_num_batched_tokens=8, block_size=4)
    run = serve((0.0, 40, 1), timeout_s=4.5, max_retries=1, scheduler=slow)
    first, second = run.requests
    assert (first["status"], second["status"]) == (TIMED_OUT, COMPLETED)
    assert second["cached_tokens"] == 36
