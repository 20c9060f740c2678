"""Prefix caching: who finds how much of a prompt, and what is lost first."""

from __future__ import annotations

from servesim.engine.kv_cache import KvCache
from servesim.workload.origin import Origin
from servesim.workload.request import Request

BLOCK = 4


def request(
    tokens: int, *prefix: tuple[int, int], stream: int | None = None, output_tokens: int = 1
) -> Request:
    return Request(0, 0.0, tokens, output_tokens, Origin(prefix=prefix, stream=stream))


def begin(kv: KvCache, who: Request) -> int:
    """Schedule the whole prompt of a request; return how many tokens of it were found."""
    finds = kv.find(who)
    found, missing = who.computed, who.missing_tokens()
    blocks = kv.short(who, missing)
    assert blocks <= kv.free
    kv.free -= blocks
    who.blocks += blocks
    if finds:
        kv.hold(who, whole=True)
    who.computed += missing
    return found


def serve(kv: KvCache, who: Request) -> int:
    """Let a request begin, emit its answer and end; return how many tokens of it were found."""
    found = begin(kv, who)
    tokens = who.input_tokens + who.output_tokens - 1
    kv.free -= -(-tokens // BLOCK) - who.blocks
    kv.leave(who, tokens)
    return found


def cache(blocks: int = 100, **options: bool) -> KvCache:
    return KvCache(blocks, BLOCK, caches=True, **options)


def test_a_prompt_is_found_in_whole_blocks_but_for_its_last_token() -> None:
    """Of 18 equal tokens, 4 blocks; of 16, all but the last, so 3 blocks."""
    kv = cache()
    assert [serve(kv, request(tokens, (7, tokens))) for tokens in (18, 18, 16, 17)] == [0, 16, 12, 16]


def test_prompts_that_share_only_what_is_not_their_beginning_find_nothing() -> None:
    kv = cache()
    serve(kv, request(12, (1, 4), (2, 8), (3, 12)))
    assert serve(kv, request(12, (4, 4), (5, 8), (6, 12))) == 0
    assert serve(kv, request(13, (1, 4), (2, 8), (9, 12))) == 8


def test_the_next_turn_finds_prompt_and_answer_but_for_the_newest_token() -> None:
    """8 in and 9 out make 16 tokens of KV: the turn that follows finds them all."""
    kv = cache()
    serve(kv, request(8, stream=5, output_tokens=9))
    assert serve(kv, request(20, stream=5)) == 16


def test_an_answer_that_nobody_continues_is_not_found() -> None:
    kv = cache()
    serve(kv, request(8, (5, 8), output_tokens=9))
    assert serve(kv, request(20, (5, 8), stream=6)) == 8


def test_a_second_copy_does_not_take_blocks_while_the_first_is_held() -> None:
    """Two prompts of 17 tokens: the second one holds the 4 full blocks of the first, and one of its own."""
    kv = cache(10)
    first, second = request(17, (7, 17)), request(17, (7, 17))
    begin(kv, first)
    assert kv.free == 5
    assert begin(kv, second) == 16
    assert kv.free == 4
    kv.leave(first, 17)
    assert kv.free == 5
    kv.leave(second, 17)
    assert kv.free == 10


def test_the_least_recently_used_is_lost_first_and_of_a_prompt_its_end() -> None:
    """Six blocks: prompts of 2 full blocks, A, B and C, A again; 3 blocks for D leave A and half of C."""
    kv = cache(6)
    for key in (1, 2, 3, 1):
        serve(kv, request(8, (key, 8)))
    serve(kv, request(12))
    found = [kv.cached_tokens(request(9, (key, 8)), kv.free) // BLOCK for key in (1, 2, 3)]
    assert found == [2, 0, 1]


def test_blocks_that_somebody_holds_are_never_lost() -> None:
    kv = cache(6)
    holder = request(9, (1, 8))
    begin(kv, holder)
    serve(kv, request(12))
    assert kv.cached_tokens(request(9, (1, 8)), kv.free) == 8
    kv.leave(holder, 9)
    assert kv.free == 6


def test_who_is_preempted_finds_its_own_again() -> None:
    """What it had computed of a prompt that nobody shares, until others take the blocks."""
    kv = cache(6)
    victim = request(10, output_tokens=4)
    begin(kv, victim)
    kv.lose(victim)
    victim.preempt(0.0)
    assert kv.cached_tokens(victim, kv.free) == 8
    serve(kv, request(19))
    assert kv.cached_tokens(victim, kv.free) == 4


def test_an_answer_written_anew_replaces_the_one_before() -> None:
    """A turn is sent twice; the next one finds the second answer, and no more of the first."""
    kv = cache()
    serve(kv, request(8, stream=5, output_tokens=33))
    serve(kv, request(8, stream=5, output_tokens=5))
    assert kv.cached_tokens(request(60, stream=5), kv.free) == 12


def test_where_nothing_is_shared_requests_find_only_their_own() -> None:
    kv = cache(shares=False)
    serve(kv, request(17, (7, 17)))
    victim = request(17, (7, 17))
    assert begin(kv, victim) == 0
    kv.lose(victim)
    victim.preempt(0.0)
    assert kv.cached_tokens(victim, kv.free) == 16


def test_without_prefix_caching_nothing_is_found() -> None:
    kv = KvCache(100, BLOCK, caches=False)
    serve(kv, request(17, (7, 17)))
    assert not kv.find(request(17, (7, 17)))


def test_what_could_have_been_found_is_counted_when_it_is_lost() -> None:
    """Of 10 blocks 8 hold something to find; the next prompt takes 9, so 7 of them are lost."""
    kv = cache(10)
    serve(kv, request(32, (1, 32)))
    assert kv.evicted_blocks == 0
    begin(kv, request(36))
    assert kv.evicted_blocks == 7
