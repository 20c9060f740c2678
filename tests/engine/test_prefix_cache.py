"""Prefix caching: the tape finds the blocks that a queue of numbered blocks finds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from servesim.engine.prefix_cache import PrefixCache
from servesim.workload.request import Request


def request() -> Request:
    """Return a request; only who it is matters."""
    return Request(0, 0.0, 1, 1)


def test_nothing_is_kept_of_who_finished() -> None:
    cache = PrefixCache(4)
    cache.given += 3
    assert not cache.kept


def test_the_free_blocks_before_it_are_taken_first() -> None:
    """Ten free blocks, then 3 of a request, all full: it finds 3 while 3 are free, then as many as are."""
    cache, victim = PrefixCache(13), request()
    cache.given += 3
    cache.keep(victim, full_blocks=3)
    assert [cache.left(victim, free) for free in (13, 4, 3, 2, 1, 0)] == [3, 3, 3, 2, 1, 0]


def test_what_is_given_back_later_is_taken_later() -> None:
    """Behind its 3 blocks, 5 are given back: 8 free blocks hold all of its own, 6 one, 5 none."""
    cache, victim = PrefixCache(13), request()
    cache.given += 3
    cache.keep(victim, full_blocks=3)
    cache.given += 5
    assert [cache.left(victim, free) for free in (9, 8, 7, 6, 5, 2)] == [3, 3, 2, 1, 0, 0]


def test_a_block_that_is_not_full_is_not_found() -> None:
    """Of 3 blocks the last one is not full: it goes first, and is nobody's."""
    cache, victim = PrefixCache(3), request()
    cache.given += 3
    cache.keep(victim, full_blocks=2)
    assert [cache.left(victim, free) for free in (3, 2, 1)] == [2, 2, 1]


def test_blocks_found_again_leave_what_lies_before_them() -> None:
    """Of 3 and 4 blocks the last 6 are free: the younger request finds 4, and the older one keeps 2."""
    cache, older, younger = PrefixCache(20), request(), request()
    for victim, blocks in ((older, 3), (younger, 4)):
        cache.given += blocks
        cache.keep(victim, full_blocks=blocks)
    assert [cache.left(victim, 6) for victim in (older, younger)] == [2, 4]
    cache.take(younger, 4)
    assert cache.left(older, 2) == 2


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[str, int]]:
    """Draw what happens to a replica's blocks: (what, how many blocks)."""
    acts = st.sampled_from(("take", "finish", "preempt", "preempt", "resume"))
    return draw(st.lists(st.tuples(acts, st.integers(1, 6)), max_size=60))


class Queue:
    """Blocks by number, the head of the queue first; ``waiting``: who was preempted, with what is left."""

    def __init__(self, blocks: int) -> None:
        self.free, self.held = list(range(blocks)), list[int]()
        self.waiting: list[tuple[Request, list[int]]] = []

    def take(self, count: int) -> None:
        """Take blocks from the head; they are nobody's any more who waits."""
        taken, self.free = self.free[:count], self.free[count:]
        self.held += taken
        self.waiting = [(who, [block for block in left if block not in taken]) for who, left in self.waiting]

    def give_back(self, count: int) -> list[int]:
        """Give blocks back, the last one first; return them in their order."""
        back, self.held = self.held[:count], self.held[count:]
        self.free += reversed(back)
        return back

    def resume(self) -> tuple[Request, list[int]]:
        """Give the last one who was preempted what is left of its blocks."""
        who, left = self.waiting.pop()
        self.free = [block for block in self.free if block not in left]
        self.held += left
        return who, left


@given(blocks=st.integers(1, 30), history=histories(), partial=st.booleans())
def test_the_tape_is_the_queue(blocks: int, history: list[tuple[str, int]], partial: bool) -> None:
    """Blocks are taken and given back at random; who was preempted last is resumed first, as on a replica."""
    cache, queue = PrefixCache(blocks), Queue(blocks)
    for act, count in history:
        if act == "take":
            queue.take(count)
        elif act in ("finish", "preempt"):
            back = queue.give_back(count)
            cache.given += len(back)
            if act == "preempt":
                queue.waiting.append((request(), back[: len(back) - partial]))
                cache.keep(queue.waiting[-1][0], len(queue.waiting[-1][1]))
        elif queue.waiting:
            who, left = queue.resume()
            cache.take(who, len(left))
        for who, left in queue.waiting:
            assert cache.left(who, len(queue.free)) == len(left)
