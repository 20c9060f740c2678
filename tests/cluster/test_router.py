"""Who gets the next request."""

from __future__ import annotations

import numpy as np
import pytest

from servesim.cluster.router import LeastOutstanding, Random, RoundRobin, Router
from servesim.streams import Streams
from servesim.workload.request import Request
from tests.serving import Service

REQUEST = Request(0, 0.0, 1, 1)


def picks(router: Router, outstanding: list[int], number: int, seed: int = 0) -> list[int]:
    """Return the replicas that a number of requests get, while the counts stay as they are."""
    pick = router.start(outstanding, Streams(seed).stream("router"))
    return [pick(REQUEST) for _ in range(number)]


def test_round_robin_goes_round() -> None:
    assert picks(RoundRobin(), [0, 9, 0], 7) == [0, 1, 2, 0, 1, 2, 0]


def test_each_start_begins_anew() -> None:
    """One router serves two pools: their turns are their own."""
    router = RoundRobin()
    assert picks(router, [0, 0], 3) == picks(router, [0, 0], 3) == [0, 1, 0]


def test_random_is_even_and_follows_its_seed() -> None:
    """Of 30,000 picks each of three replicas gets 10,000, give or take 4 x sqrt(30,000 x 2/9) = 327."""
    counts = np.bincount(picks(Random(), [0, 50, 0], 30_000))
    assert np.abs(counts - 10_000).max() < 327
    assert picks(Random(), [0, 0, 0], 50) == picks(Random(), [0, 0, 0], 50)
    assert picks(Random(), [0, 0, 0], 50) != picks(Random(), [0, 0, 0], 50, seed=1)


def test_random_picks_are_independent() -> None:
    """Of 30,000 pairs of successive picks one in three is of equals, give or take 4 standard deviations."""
    drawn = np.array(picks(Random(), [0, 0, 0], 30_001))
    assert abs((drawn[1:] == drawn[:-1]).mean() - 1 / 3) < 4 * np.sqrt(2 / 9 / 30_000)


@pytest.mark.parametrize(
    ("outstanding", "replica"), [([3, 1, 2], 1), ([2, 1, 1], 1), ([0, 0, 0], 0), ([5], 0)]
)
def test_least_outstanding_takes_the_first_of_the_least(outstanding: list[int], replica: int) -> None:
    assert picks(LeastOutstanding(), outstanding, 1) == [replica]


def test_least_outstanding_sees_the_counts_change() -> None:
    outstanding = [0, 0]
    pick = LeastOutstanding().start(outstanding, Streams(0).stream("router"))
    assert pick(REQUEST) == 0
    outstanding[0] += 1
    assert pick(REQUEST) == 1


def test_outstanding_counts_running_and_waiting() -> None:
    """Steps of 10 ms. The first request runs until 1 s; the next two go to the other replica, one by one.

    The third is sent when the second has finished; the fourth while both replicas are busy goes to the first.
    """
    service = Service(replicas=2, router=LeastOutstanding())
    run = service.serve([(0.0, 1, 100), (0.1, 1, 10), (0.3, 1, 10), (0.31, 1, 1)])
    assert [row["replica"] for row in run.by_id] == [0, 1, 1, 0]
