"""Clients: who sends what, and when."""

from __future__ import annotations

from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from servesim.cluster.client import PAUSE_REQUESTS, OpenLoop
from servesim.engine.clock import EARLY_S
from servesim.engine.continuous import Continuous
from servesim.engine.static import Static
from servesim.streams import Streams
from servesim.workload.arrivals import ClosedLoop, Poisson
from servesim.workload.lengths import Fixed
from servesim.workload.synthetic import Synthetic
from tests.costs import constant_step
from tests.serving import PLENTY, Run, Service

SERVICE = Service(Continuous(max_num_seqs=1), constant_step(1.0))


# ---- open loop -------------------------------------------------------------------------------------


def test_an_open_loop_sends_whatever_the_answers() -> None:
    """Three requests in three seconds, each of which takes ten."""
    run = SERVICE.serve([(0.0, 1, 10), (1.0, 1, 10), (3.0, 1, 10)])
    assert [row["sent_s"] for row in run.by_id] == [0.0, 1.0, 3.0]
    assert [row["finished_s"] for row in run.by_id] == [10.0, 20.0, 30.0]


def test_requests_are_numbered_across_batches() -> None:
    """20,000 requests come in batches of 8,192."""
    service = Service(Continuous(), constant_step(1e-6))
    run = service.serve(Synthetic(Poisson(1000.0), Fixed(1, 1), requests=20_000))
    assert [row["request_id"] for row in run.by_id] == list(range(20_000))
    assert all(a["sent_s"] <= b["sent_s"] for a, b in pairwise(run.by_id))


def test_the_cluster_sees_an_arrival_early() -> None:
    """0.1 us, so that rounding does not decide whether it comes before a boundary."""
    run = Run(SERVICE, [(2.0, 1, 1)])
    assert next(run.instants()) == 2.0 - EARLY_S
    assert run.cluster.injected == 1


def test_what_is_sent_at_one_moment_arrives_at_one_instant() -> None:
    run = Run(SERVICE, [(2.0, 1, 1)] * 3)
    next(run.instants())
    assert run.cluster.injected == 3


@given(st.lists(st.floats(0, 1e-6), min_size=1, max_size=20).map(sorted))
def test_times_as_short_as_the_early_window_are_sent(times: list[float]) -> None:
    """Rounding of (t - 0.1 us) + 0.1 us must not put off a request for ever."""
    with patch("servesim.engine.clock.MANY", 1000):
        run = SERVICE.serve([(time_s, 1, 1) for time_s in times])
    assert run.cluster.injected == len(times)


def test_a_pause_every_thousand_requests() -> None:
    paused: list[int] = []
    run = Run(Service(Continuous(), constant_step(1e-6)), [])
    workload = Synthetic(Poisson(1000.0), Fixed(1, 1), requests=2 * PAUSE_REQUESTS + 1)
    OpenLoop(run.clock, workload.batches(Streams(0)), run.cluster, paused.append)
    run.finish()
    assert paused == [0, PAUSE_REQUESTS, 2 * PAUSE_REQUESTS]


def test_what_a_horizon_leaves_is_counted() -> None:
    run = SERVICE.serve([(float(second), 1, 1) for second in range(10)], horizon_s=6.5)
    assert (run.cluster.injected, run.client.remaining()) == (7, 3)


def test_no_traffic_at_all() -> None:
    run = SERVICE.serve([])
    assert (run.cluster.injected, run.client.remaining(), run.requests, run.leaps) == (0, 0, [], [])


# ---- closed loop -----------------------------------------------------------------------------------


def closed(users: int, requests: int) -> Run:
    """Let users send requests of 2 s to a server that takes one at a time."""
    return SERVICE.serve(Synthetic(ClosedLoop(users), Fixed(1, 2), requests=requests))


def test_one_user_waits_for_the_answer() -> None:
    """Requests of 2 s follow each other without a pause."""
    run = closed(users=1, requests=3)
    assert [row["sent_s"] for row in run.by_id] == pytest.approx([0.0, 2.0, 4.0], abs=1e-6)
    assert [row["finished_s"] for row in run.by_id] == pytest.approx([2.0, 4.0, 6.0], abs=1e-6)


def test_all_users_start_at_once() -> None:
    run = closed(users=3, requests=6)
    assert [row["sent_s"] for row in run.by_id] == pytest.approx([0.0, 0.0, 0.0, 2.0, 4.0, 6.0], abs=1e-6)


def test_no_more_requests_than_users_are_in_the_system() -> None:
    users = 4
    run = Run(SERVICE, Synthetic(ClosedLoop(users), Fixed(1, 3), requests=20))
    numbers = [run.cluster.unfinished for _ in run.instants()]
    assert max(numbers) == users
    assert run.cluster.injected == 20


class TwoAndThree(Fixed):
    """Outputs of 2 and 3 tokens in turn."""

    def tokens(self, normals: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return one pair of lengths per row of ``normals``."""
        return np.ones(len(normals), dtype=np.int64), np.arange(len(normals)) % 2 + 2


def test_a_reply_reaches_its_user_when_the_next_step_has_begun() -> None:
    """Two users, two slots: the first has its answer at 2; the step from 2 to 3 is the other's alone."""
    service = Service(Continuous(max_num_seqs=2), constant_step(1.0))
    run = service.serve(Synthetic(ClosedLoop(2), TwoAndThree(1, 1), requests=3))
    assert [row["sent_s"] for row in run.by_id] == [0.0, 0.0, 2.0]
    assert [row["queue_s"] for row in run.by_id] == [0.0, 0.0, 1.0]


def test_the_rest_of_a_closed_loop_is_not_sent() -> None:
    run = SERVICE.serve(Synthetic(ClosedLoop(2), Fixed(1, 2), requests=10), horizon_s=5.0)
    assert (run.cluster.injected, run.client.remaining()) == (4, 6)


def test_a_duration_ends_the_sending() -> None:
    """The answer at 4 is the last one that a request follows; nothing counts as not sent."""
    workload = Synthetic(ClosedLoop(1), Fixed(1, 2), duration_s=5.0)
    run = SERVICE.serve(workload, duration_s=5.0)
    assert [row["sent_s"] for row in run.by_id] == pytest.approx([0.0, 2.0, 4.0], abs=1e-6)
    assert run.client.remaining() == 0


def test_a_refusal_is_an_answer() -> None:
    """Prompts that are too long are dropped at once, and their user sends the next request."""
    service = Service(Continuous(), constant_step(1.0), max_model_len=8)
    run = service.serve(Synthetic(ClosedLoop(2), Fixed(8, 1), requests=5))
    assert run.cluster.injected == 5
    assert run.cluster.unfinished == 0
    assert max(row["sent_s"] for row in run.requests) < 1e-6


def test_users_of_a_static_batch_return_together() -> None:
    service = Service(Static(batch_size=3, batch_timeout_s=PLENTY), constant_step(1.0))
    run = service.serve(Synthetic(ClosedLoop(3), Fixed(1, 2), requests=6))
    assert [row["sent_s"] for row in run.by_id] == [0.0] * 3 + [2.0] * 3
    assert [row["finished_s"] for row in run.by_id] == pytest.approx([2.0] * 3 + [4.0] * 3, abs=1e-6)
