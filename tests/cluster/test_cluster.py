"""Clusters take requests in, count them, and write each one down when it leaves."""

from __future__ import annotations

from math import isnan

from servesim.cluster.disaggregated import Disaggregated
from servesim.cluster.router import LeastOutstanding, RoundRobin
from servesim.engine.continuous import Continuous
from servesim.engine.log import COMPLETED, DROPPED, NO_REASON, PROMPT_TOO_LONG, QUEUED, RUNNING
from tests.costs import constant_step
from tests.serving import Run, Service

SERVICE = Service(Continuous(), constant_step(1.0), max_model_len=10)


def test_a_prompt_that_leaves_no_room_is_dropped_on_arrival() -> None:
    """Of ten tokens a prompt may have nine."""
    run = SERVICE.serve([(0.0, 9, 1), (1.5, 10, 1), (2.0, 500, 1)])
    assert [row["status"] for row in run.by_id] == [COMPLETED, DROPPED, DROPPED]
    assert [row["reason"] for row in run.by_id] == [NO_REASON, PROMPT_TOO_LONG, PROMPT_TOO_LONG]
    dropped = run.by_id[1]
    assert (dropped["replica"], dropped["generated"]) == (-1, 0)
    assert isnan(dropped["queue_s"])
    assert isnan(dropped["finished_s"])


def test_a_dropped_request_disturbs_nobody() -> None:
    """It takes no turn of the router, and neither wakes nor cuts a replica."""
    router = RoundRobin()
    service = Service(Continuous(), constant_step(1.0), replicas=2, router=router, max_model_len=10)
    some = [(0.0, 3, 6), (0.5, 3, 6), (5.5, 3, 2)]
    run = service.serve([*some[:2], (1.5, 10, 1), some[2]])
    assert run.leaps == service.serve(some).leaps


def test_an_output_is_capped_where_the_sequence_would_grow_too_long() -> None:
    run = SERVICE.serve([(0.0, 4, 6), (0.0, 4, 7), (0.0, 9, 50)])
    assert [row["output_tokens"] for row in run.by_id] == [6, 6, 1]
    assert [row["generated"] for row in run.by_id] == [6, 6, 1]
    assert run.cluster.length_capped == 2


def test_requests_are_written_down_in_the_order_of_finishing() -> None:
    run = SERVICE.serve([(0.0, 1, 5), (0.0, 1, 2), (0.0, 1, 3)])
    assert [row["request_id"] for row in run.requests] == [1, 2, 0]


def test_unfinished_counts_who_is_in_the_system() -> None:
    """Waiting, running or on the way; 2 s and 3 s of service side by side."""
    run = Run(SERVICE, [(0.0, 1, 2), (0.5, 1, 2)])
    assert {now: run.cluster.unfinished for now in run.instants() if now >= 0.4} == {
        0.5 - 1e-7: 2,
        1.0: 2,
        2.0: 1,
        3.0: 0,
    }


def test_a_cut_run_tells_running_from_queued() -> None:
    """One slot: at 3.5 the first request is running, the second has never been scheduled."""
    service = Service(Continuous(max_num_seqs=1), constant_step(1.0))
    run = service.serve([(0.0, 1, 9), (0.0, 1, 9)], horizon_s=3.5)
    assert [row["status"] for row in run.by_id] == [RUNNING, QUEUED]
    assert [row["generated"] for row in run.by_id] == [3, 0]
    assert run.by_id[0]["first_token_s"] == 1.0


def test_a_request_in_transfer_is_running() -> None:
    service = Service(Disaggregated(), constant_step(1.0), latency_s=5.0)
    run = service.serve([(0.0, 1, 9)], horizon_s=3.0)
    row = run.by_id[0]
    assert (row["status"], row["generated"]) == (RUNNING, 0)
    assert (row["prefill_replica"], row["replica"]) == (0, 1)


def test_who_leaves_is_told_to_the_client() -> None:
    run = Run(SERVICE, [(0.0, 1, 2), (0.5, 10, 1)])
    left: list[int] = []
    run.cluster.on_leave = lambda request: left.append(request.id)
    run.finish()
    assert left == [1, 0]


def test_the_router_counts_only_who_is_there() -> None:
    """Least outstanding: a dropped request is never counted, a finished one no more."""
    service = Service(
        Continuous(), constant_step(1.0), replicas=2, router=LeastOutstanding(), max_model_len=10
    )
    run = service.serve([(0.0, 1, 2), (0.1, 10, 1), (0.2, 1, 9), (2.5, 1, 1)])
    assert [row["replica"] for row in run.by_id] == [0, -1, 1, 0]
