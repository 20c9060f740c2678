"""What routers see of a pool, at once and late."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from servesim.cluster.router import LeastKv, LeastOutstanding, Pick, PowerOfTwo, Router
from servesim.cluster.view import LateView, PoolView
from servesim.engine.continuous import Continuous
from servesim.engine.static import Static
from servesim.streams import Streams
from servesim.workload.origin import Origin
from servesim.workload.request import Request
from tests.cluster.router.views import Pool, request
from tests.costs import constant_step
from tests.serving import Service


def test_counts_are_seen_late_and_in_order() -> None:
    """At every moment the view shows the counts of exactly so much earlier."""
    rng, pool = Streams(0).stream("test"), Pool([0, 0, 0])
    late = LateView(pool, 2.0)
    history = [(0.0, (0, 0, 0))]
    for gap in rng.exponential(0.5, size=300).tolist():
        pool.now += gap
        late.catch_up()
        shown = next(counts for time_s, counts in reversed(history) if time_s <= max(pool.now - 2.0, 0.0))
        assert tuple(late.outstanding) == shown
        pool.count(int(rng.integers(3)), 1)
        history.append((pool.now, (pool.outstanding[0], pool.outstanding[1], pool.outstanding[2])))


def test_blocks_and_caches_are_looked_at_once_a_period() -> None:
    pool = Pool([0, 0])
    late = LateView(pool, 2.0)
    shared, shorter = (request(Origin(prefix=((1, 10),)), tokens) for tokens in (100, 15))
    seen = []
    for now in (1.0, 1.9, 2.1, 3.9, 4.0):
        pool.now = now
        pool.used, pool.cached = [int(10 * now)] * 2, [int(20 * now)] * 2
        late.catch_up()
        seen.append((late.kv_used(1), late.cached_tokens(0, shared), late.cached_tokens(1, shorter)))
    assert seen == [(10, 20, 15), (10, 20, 15), (21, 42, 15), (21, 42, 15), (40, 80, 15)]


def test_time_may_begin_anew_after_warming_up() -> None:
    pool = Pool([0, 0], now=50.0)
    late = LateView(pool, 2.0)
    pool.count(1)
    pool.count(1, -1)
    pool.now = 0.0
    late.catch_up()
    pool.count(0)
    pool.now = 2.0
    late.catch_up()
    assert late.outstanding == [1, 0]


SENT = [(0.3 * number, 40 + number % 7, 60 + 13 * (number % 5)) for number in range(60)]


@pytest.mark.parametrize("router", [LeastOutstanding, PowerOfTwo, LeastKv])
def test_a_delay_that_nothing_happens_in_is_none(router: type[LeastOutstanding]) -> None:
    """Everything happens at moments at least a millisecond apart, of which the view is half a one late."""
    step_time = constant_step(0.007)
    at_once, late = (
        Service(Continuous(), step_time, replicas=3, router=router(delay_s=delay_s)).serve(SENT)
        for delay_s in (0.0, 1e-6)
    )
    assert late.requests == at_once.requests


def test_the_later_it_sees_the_more_the_least_loaded_is_trampled_on() -> None:
    """Of 60 requests in 18 s, all in the system for long, all go to replica 0 until the first is seen.

    Two random choices stay near 20 each, give or take 4 x sqrt(60 x 2/9), as nobody waits for the next look.
    """

    def most(router: Router) -> int:
        run = Service(replicas=3, router=router).serve([(0.3 * number, 8, 10_000) for number in range(60)])
        return int(np.bincount(run.column("replica").astype(int)).max())

    herds = [most(LeastOutstanding(delay_s=delay_s)) for delay_s in (0.0, 1.0, 5.0, 20.0)]
    assert herds[0] == 20
    assert herds[-1] == 60
    assert herds == sorted(herds)
    assert most(PowerOfTwo(delay_s=20.0)) < 20 + 4 * np.sqrt(60 * 2 / 9)


# ---- what engines show


@dataclass(frozen=True)
class Looks:
    """A router that writes down the blocks held in each replica, and sends everything to the first."""

    seen: list[list[int]] = field(default_factory=list)

    def start(self, view: PoolView, rng: np.random.Generator) -> Pick:
        """Return a function that looks."""

        def pick(request: Request) -> int:
            self.seen.append([view.kv_used(index) for index in range(view.replicas)])
            return 0

        return pick


def used(scheduler: Continuous | Static, *at_s: float) -> list[int]:
    """Return the blocks that a request of 100 + 100 tokens, sent at 0, holds at moments."""
    router: Router = (looks := Looks())
    service = Service(scheduler, constant_step(1.0), replicas=2, router=router, kv_blocks=1000)
    service.serve([(0.0, 100, 100), *((time_s, 1, 1) for time_s in at_s)])
    assert all(idle == 0 for _, idle in looks.seen)
    return [first for first, _ in looks.seen][1:]


def test_blocks_are_those_held_at_the_moment_in_mid_leap_too() -> None:
    """100 tokens take 7 blocks, with room for 12 more; from 1 s on one more is written a second.

    So the step from 12 to 13 s writes into the last of these places, and the next one takes an eighth block.
    """
    assert used(Continuous(), 12.5) == [7]
    assert used(Continuous(), 13.5) == [8]
    assert used(Continuous(), 99.5) == [-(-199 // 16)]
    assert used(Continuous(), 200.5) == [0]


def test_a_static_batch_holds_what_it_reserves() -> None:
    assert used(Static(batch_size=1), 50.5, 300.5) == [-(-200 // 16), 0]
