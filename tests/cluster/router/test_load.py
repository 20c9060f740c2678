"""Routers that look at nothing, or at the load."""

from __future__ import annotations

import numpy as np
import pytest

from servesim.cluster.router import LeastKv, LeastOutstanding, PowerOfTwo, Random, RoundRobin
from servesim.streams import Streams
from servesim.workload.request import Request
from tests.cluster.router.views import Pool, picks
from tests.serving import Service

REQUEST = Request(0, 0.0, 1, 1)


def test_round_robin_goes_round() -> None:
    assert picks(RoundRobin(), Pool([0, 9, 0]), 7) == [0, 1, 2, 0, 1, 2, 0]


def test_each_start_begins_anew() -> None:
    """One router serves two pools: their turns are their own."""
    router = RoundRobin()
    assert picks(router, Pool([0, 0]), 3) == picks(router, Pool([0, 0]), 3) == [0, 1, 0]


def test_random_is_even_and_follows_its_seed() -> None:
    """Of 30,000 picks each of three replicas gets 10,000, give or take 4 x sqrt(30,000 x 2/9) = 327."""
    counts = np.bincount(picks(Random(), Pool([0, 50, 0]), 30_000))
    assert np.abs(counts - 10_000).max() < 327
    pool = Pool([0, 0, 0])
    assert picks(Random(), pool, 50) == picks(Random(), pool, 50)
    assert picks(Random(), pool, 50) != picks(Random(), pool, 50, seed=1)


def test_random_picks_are_independent() -> None:
    """Of 30,000 pairs of successive picks one in three is of equals, give or take 4 standard deviations."""
    drawn = np.array(picks(Random(), Pool([0, 0, 0]), 30_001))
    assert abs((drawn[1:] == drawn[:-1]).mean() - 1 / 3) < 4 * np.sqrt(2 / 9 / 30_000)


@pytest.mark.parametrize(
    ("outstanding", "replica"), [([3, 1, 2], 1), ([2, 1, 1], 1), ([0, 0, 0], 0), ([5], 0)]
)
def test_least_outstanding_takes_the_first_of_the_least(outstanding: list[int], replica: int) -> None:
    assert picks(LeastOutstanding(), Pool(outstanding)) == [replica]


def test_least_outstanding_sees_the_counts_change() -> None:
    pick = Pool([0, 0]).start(LeastOutstanding())
    assert [pick(REQUEST), pick(REQUEST), pick(REQUEST)] == [0, 1, 0]


def test_outstanding_counts_running_and_waiting() -> None:
    """Steps of 10 ms. The first request runs until 1 s; the next two go to the other replica, one by one.

    The third is sent when the second has finished; the fourth while both replicas are busy goes to the first.
    """
    service = Service(replicas=2, router=LeastOutstanding())
    run = service.serve([(0.0, 1, 100), (0.1, 1, 10), (0.3, 1, 10), (0.31, 1, 1)])
    assert [row["replica"] for row in run.by_id] == [0, 1, 1, 0]


@pytest.mark.parametrize("choices", [4, 9])
def test_with_all_for_a_choice_the_least_of_all_is_taken(choices: int) -> None:
    """Ties go to the first drawn: each of the three least gets a third, give or take 4 deviations."""
    counts = np.bincount(picks(PowerOfTwo(choices=choices), Pool([1, 2, 1, 1]), 3000), minlength=4)
    assert counts[1] == 0
    assert np.abs(counts[[0, 2, 3]] - 1000).max() < 4 * np.sqrt(3000 * 2 / 9)


def test_the_choices_differ_and_are_equally_likely() -> None:
    """Of 4 replicas with ascending counts the k-th least wins with C(4-k, 2) / C(4, 3) for 3 choices.

    The least is among three of four in 3 of 4 cases; the most loaded two never win.
    """
    counts = np.bincount(picks(PowerOfTwo(choices=3), Pool([3, 1, 0, 2]), 4000), minlength=4)
    assert counts[0] == counts[3] == 0
    assert abs(counts[2] - 3000) < 4 * np.sqrt(4000 * 3 / 16)


@pytest.mark.parametrize("choices", [1, 2])
def test_the_tail_of_the_queues_is_that_of_the_supermarket_model(choices: int) -> None:
    """Of many M/M/1 queues with load rho the share with k or more customers is rho^((d^k - 1)/(d - 1)).

    (Mitzenmacher, IEEE TPDS 12(10), 2001, section 3; with one choice it is the M/M/1's rho^k.) Arrivals and
    the ends of services are the jumps of one uniformised chain, in which those of idle servers do nothing.
    """
    load, servers, jumps = 0.8, 200, 160_000
    pool, rng = Pool([0] * servers), Streams(1).stream("test")
    pick = pool.start(PowerOfTwo(choices=choices))
    arrives = rng.random(jumps) < load / (1 + load)
    at_least = np.zeros(5)
    for jump, server in enumerate(rng.integers(servers, size=jumps).tolist()):
        if arrives[jump]:
            pick(REQUEST)
        elif pool.outstanding[server]:
            pool.count(server, -1)
        if jump >= jumps // 4 and jump % 100 == 0:
            counts = np.array(pool.outstanding)
            at_least += [(counts >= length).mean() for length in range(1, 6)]
    share = at_least / (jumps * 3 // 4 // 100)
    exponents = [sum(choices**power for power in range(length)) for length in range(1, 6)]
    np.testing.assert_allclose(share, load ** np.array(exponents), atol=0.02)


def test_the_emptiest_cache_comes_first_then_the_fewest_requests() -> None:
    assert picks(LeastKv(), Pool([0, 5, 9], used=[30, 20, 10])) == [2]
    assert picks(LeastKv(), Pool([2, 1, 1], used=[10, 10, 10])) == [1]


def test_long_contexts_weigh_though_they_are_few() -> None:
    """One prompt of 1,600 tokens holds 100 blocks, so the next three short ones go to the other replica."""
    sent = [(0.0, 1600, 100), (0.5, 16, 100), (0.6, 16, 100), (0.7, 16, 100)]
    run = Service(replicas=2, router=LeastKv()).serve(sent)
    assert [row["replica"] for row in run.by_id] == [0, 1, 1, 1]
