"""Routers that weigh what is cached against who is ahead."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from servesim.cluster.disaggregated import Disaggregated
from servesim.cluster.router import KvAware, LeastOutstanding, PrefixAffinity, Router
from servesim.cluster.router.memory import SentPrompts
from servesim.engine.continuous import Continuous
from servesim.engine.static import Static
from servesim.streams import Streams
from servesim.workload.origin import Origin
from tests.cluster.router.views import Pool, picks, request
from tests.serving import Row, Service

MANY = 10**9


# ---- what is remembered


def memory(*origins: Origin, room: int = MANY, tokens: int = 1000) -> SentPrompts:
    sent = SentPrompts(room)
    for origin in origins:
        sent.note(request(origin, tokens))
    return sent


@pytest.mark.parametrize(
    ("spans", "matched"),
    [
        ([], 0),
        ([(1, 400)], 400),
        ([(1, 300)], 300),
        ([(1, 900)], 400),
        ([(1, 400), (2, 700)], 700),
        ([(1, 400), (3, 700)], 400),
        ([(4, 400), (2, 700)], 0),
    ],
)
def test_prompts_match_as_far_as_their_spans(spans: list[tuple[int, int]], matched: int) -> None:
    sent = memory(Origin(prefix=((1, 400), (2, 700))))
    assert sent.matched(request(Origin(prefix=tuple(spans)), 1000)) == matched


def test_a_later_turn_finds_the_prompt_of_the_earlier() -> None:
    """It is behind the same spans and of the same stream; another stream finds the spans alone."""
    sent = memory(Origin(prefix=((1, 400),), stream=5))
    assert sent.matched(request(Origin(prefix=((1, 400),), stream=5), 1800)) == 1000
    assert sent.matched(request(Origin(prefix=((1, 400),), stream=6), 1800)) == 400
    assert sent.matched(request(Origin(prefix=((1, 400),)), 1800)) == 400


def test_the_oldest_is_forgotten_and_ends_before_beginnings() -> None:
    """Of 1,000 tokens, 600 are those of the second prompt: the first one's last span goes."""
    first, second = Origin(prefix=((1, 400), (2, 700))), Origin(prefix=((3, 600),))
    sent = memory(first, second, room=1000)
    assert [sent.matched(request(origin)) for origin in (first, second)] == [400, 600]
    again = memory(first, second, first, room=1000)
    assert [again.matched(request(origin)) for origin in (first, second)] == [700, 0]


def test_a_stream_is_no_span_of_the_same_number() -> None:
    assert memory(Origin(stream=1)).matched(request(Origin(prefix=((1, 400),)))) == 0


def test_a_span_that_grows_counts_once() -> None:
    shrunk = memory(*(Origin(prefix=((1, end),)) for end in (500, 300)))
    assert shrunk.matched(request(Origin(prefix=((1, 1000),)))) == 500
    grown = memory(*(Origin(prefix=((1, end),)) for end in (100, 500, 300, 900)), room=900)
    assert grown.matched(request(Origin(prefix=((1, 1000),)))) == 900


# ---- the cost


@pytest.mark.parametrize(("price", "replica"), [(0, 1), (99, 1), (101, 0), (MANY, 0)])
def test_a_request_ahead_counts_as_much_as_so_many_tokens(price: float, replica: int) -> None:
    """Replica 1 has 300 tokens of the prompt more and 3 requests more: both cost the same at 100."""
    pool = Pool([1, 4], cached=[100, 400])
    assert picks(KvAware(tokens_per_outstanding=price), pool) == [replica]


@pytest.mark.parametrize(("margin", "most"), [(None, 12), (4, 5), (1, 2), (0, 1)])
def test_a_beginning_that_all_share_holds_them_up_to_the_imbalance_allowed(
    margin: int | None, most: int
) -> None:
    """The replica that had the first prompt gets so many more than the other, which has it then, too."""
    pool = Pool([0, 0])
    pick = pool.start(PrefixAffinity(tokens_per_outstanding=10, max_imbalance=margin))
    ahead = 0
    for _ in range(12):
        pick(request(Origin(prefix=((1, 900),)), 1000))
        ahead = max(ahead, pool.outstanding[0] - pool.outstanding[1])
    assert ahead == most


def test_of_equal_costs_the_fewer_outstanding_and_then_the_first_win() -> None:
    assert picks(KvAware(tokens_per_outstanding=0), Pool([2, 1, 1], cached=[0, 0, 0])) == [1]
    assert picks(KvAware(tokens_per_outstanding=100), Pool([1, 4], cached=[100, 400])) == [0]


def test_nothing_in_common_is_least_outstanding() -> None:
    for router in (KvAware(), PrefixAffinity(), PrefixAffinity(tokens_per_outstanding=0)):
        pick = Pool([3, 0, 1], cached=[0, 0, 0]).start(router)
        plain = Pool([3, 0, 1]).start(LeastOutstanding())
        assert [pick(request()) for _ in range(12)] == [plain(request()) for _ in range(12)]


def spread(price: float) -> tuple[int, int]:
    """Send 400 prompts of 8 kinds to four replicas; return the most that one has, and the places of kinds."""
    pool = Pool([0] * 4)
    pick = pool.start(PrefixAffinity(tokens_per_outstanding=price))
    places: Counter[tuple[int, int]] = Counter()
    for kind in Streams(0).stream("kinds").zipf(1.5, 400).tolist():
        places[kind % 8, pick(request(Origin(prefix=((kind % 8, 900),)), 1000))] += 1
    return max(pool.outstanding), len(places)


def test_the_price_of_a_request_ahead_trades_hits_for_balance() -> None:
    """Free of charge every kind of prompt stays in one place; beyond the prompt's length all is even."""
    most, places = zip(*(spread(price) for price in (0, 30, 300, MANY)), strict=True)
    assert list(most) == sorted(most, reverse=True)
    assert list(places) == sorted(places)
    assert (places[0], most[-1]) == (8, 100)
    assert most[0] > 1.5 * most[-1]
    assert places[-1] > 2 * places[0]


def test_where_no_prefix_is_reused_only_the_load_counts() -> None:
    for router in (KvAware(tokens_per_outstanding=0), PrefixAffinity(tokens_per_outstanding=0)):
        assert picks(router, Pool([1, 0], cached=[90, 0], reuses_prefixes=False)) == [1]


def service(scheduler: Continuous | Static) -> list[Row]:
    """Serve six requests that come at once and begin alike on pools of two, whoever is ahead."""
    router = PrefixAffinity(tokens_per_outstanding=0)
    origins = [Origin(prefix=((1, 90),))] * 6
    served = Service(scheduler, replicas=2, decode_replicas=2, router=router, origins=origins)
    return served.serve([(0.0, 100, 500)] * 6).by_id


@pytest.mark.parametrize(
    ("scheduler", "replicas"),
    [
        (Continuous(), [0, 0, 0, 0, 0, 0]),
        (Continuous(enable_prefix_caching=False), [0, 1, 0, 1, 0, 1]),
        (Static(), [0, 1, 0, 1, 0, 1]),
    ],
)
def test_prompts_that_begin_alike_meet_where_that_helps(
    scheduler: Continuous | Static, replicas: list[int]
) -> None:
    assert [row["replica"] for row in service(scheduler)] == replicas


def test_a_decode_pool_is_balanced_whatever_the_prompts_share() -> None:
    """They all go to one prefill replica, and turn by turn to the decode replicas."""
    rows = service(Disaggregated())
    assert [row["prefill_replica"] for row in rows] == [0] * 6
    assert [row["replica"] for row in rows] == [2, 3] * 3


# ---- hits


def hits(router: Router, kv_blocks: int, replicas: int = 3) -> int:
    """Serve the turns of 12 conversations in a random order; return the tokens found again."""
    order = Streams(2).stream("order").permutation(np.repeat(np.arange(12), 6)).tolist()
    turns: Counter[int] = Counter()
    sent, origins = [], []
    for number, session in enumerate(order):
        turns[session] += 1
        sent.append((0.4 * number, 200 * turns[session], 190))
        origins.append(Origin(session=session, prefix=((-1, 96),), stream=session))
    service = Service(Continuous(), replicas=replicas, router=router, kv_blocks=kv_blocks, origins=origins)
    return int(service.serve(sent).column("cached_tokens").sum())


def test_affinity_finds_what_balance_alone_does_not() -> None:
    """Least to most: nobody looks, little is remembered, all that was sent is, and the caches are asked.

    Whoever minds nothing else finds as much as if there were but one replica.
    """
    looks = [
        LeastOutstanding(),
        PrefixAffinity(tokens_per_outstanding=256, remembers=2000),
        PrefixAffinity(tokens_per_outstanding=256),
        KvAware(tokens_per_outstanding=256),
        KvAware(tokens_per_outstanding=0),
    ]
    found = [hits(router, kv_blocks=10**6) for router in looks]
    assert found == sorted(set(found))
    assert found[-1] == hits(LeastOutstanding(), kv_blocks=10**6, replicas=1)
    known, remembered = KvAware(tokens_per_outstanding=256), PrefixAffinity(tokens_per_outstanding=256)
    assert hits(known, kv_blocks=200) > hits(remembered, kv_blocks=200)
