"""The host memory that takes the KV of preempted requests."""

from __future__ import annotations

import pytest

from servesim.engine.kv_cache import KvCache
from servesim.engine.swap_space import Swaps, SwapSpace
from servesim.workload.request import Request

BLOCK = 4


def preempted(tokens: int, host_blocks: int = 10) -> tuple[KvCache, Request]:
    """Return a cache of 10 blocks, and a request that had computed so many tokens and has been preempted."""
    kv = KvCache(10, BLOCK, caches=True, swap=SwapSpace(host_blocks, BLOCK, 0.5, Swaps()))
    request = Request(0, 0.0, tokens, 9)
    request.generated, request.computed = 1, tokens
    kv.free -= kv.short(request, 0)
    kv.lose(request)
    request.preempt(0.0)
    return kv, request


def test_a_block_is_copied_out_even_if_it_is_not_full() -> None:
    kv, request = preempted(9)
    assert kv.swap is not None
    assert (kv.swap.free, request.swapped) == (7, 9)
    assert [kv.swap.wait_s(), kv.swap.wait_s()] == [1.5, 0.0]


@pytest.mark.parametrize(("taken", "back"), [(0, 1), (6, 1), (8, 1), (9, 2), (10, 3)])
def test_what_is_still_on_the_gpu_is_not_copied_back(taken: int, back: int) -> None:
    """9 tokens leave two full blocks at the tail of the queue, behind seven blank ones and one not full."""
    kv, request = preempted(9)
    assert kv.swap is not None
    kv.free -= taken
    assert kv.find(request)
    assert request.computed == 9
    kv.hold(request, whole=False)
    assert kv.swap.swaps.in_blocks == back
    assert (kv.swap.free, request.swapped) == (10, 0)


def test_where_the_host_is_full_all_is_computed_again() -> None:
    kv, request = preempted(9, host_blocks=2)
    assert kv.swap is not None
    assert (request.swapped, kv.swap.free, kv.swap.swaps.refused) == (0, 2, 1)


def test_the_host_takes_no_more_than_it_has_room_for() -> None:
    space = SwapSpace(5, BLOCK, 0.5, Swaps())
    waiting = [Request(number, 0.0, 9, 9) for number in range(2)]
    for request in waiting:
        request.computed = 9
        space.take(request)
    assert [request.swapped for request in waiting] == [9, 0]
    assert space.drop(waiting[0]) == 3
    assert space.free == 5
