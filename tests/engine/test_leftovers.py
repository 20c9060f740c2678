"""What is left of the preempted: the tape, held against the cache that keeps the same as spans."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from servesim.engine.kv_cache import KvCache
from servesim.workload.request import Request

BLOCK, BLOCKS = 4, 40


class Replica:
    """A cache whose requests come and go, the last preempted first; what each found is written down."""

    def __init__(self, *, in_turn: bool) -> None:
        self.kv = KvCache(BLOCKS, BLOCK, caches=True, shares=False, in_turn=in_turn)
        self.running: list[Request] = []
        self.preempted: list[Request] = []
        self.found: list[int] = []

    def begin(self, tokens: int) -> None:
        """Let the last preempted go on, or a prompt of so many tokens be computed, if there is room."""
        request = self.preempted[-1] if self.preempted else Request(0, 0.0, tokens, 100)
        reuses = request.may_be_cached and self.kv.find(request)
        blocks = self.kv.short(request, request.missing_tokens())
        if blocks > self.kv.free:
            request.computed = request.blocks = 0
            return
        self.kv.free -= blocks
        if self.preempted:
            self.found.append(request.computed)
            self.preempted.pop()
        if reuses:
            self.kv.hold(request, whole=True)
        request.computed += request.missing_tokens()
        request.generated += 1
        self.running.append(request)

    def preempt(self) -> None:
        """Let the last running request lose its blocks."""
        if self.running:
            request = self.running.pop()
            self.kv.lose(request)
            request.preempt(0.0)
            self.preempted.append(request)

    def end(self, place: int) -> None:
        """Let some running request end."""
        if self.running:
            request = self.running.pop(place % len(self.running))
            self.kv.leave(request, request.computed)

    def hang_up(self, place: int) -> None:
        """Let some preempted request not come back."""
        if self.preempted:
            self.kv.forget(self.preempted.pop(place % len(self.preempted)))


@settings(max_examples=60)
@given(random=st.randoms(use_true_random=False))
def test_the_tape_finds_and_loses_what_spans_do(random: Random) -> None:
    tape, spans = Replica(in_turn=True), Replica(in_turn=False)
    for _ in range(60):
        act, tokens = random.choice(("begin", "begin", "preempt", "end", "hang up")), random.randint(1, 50)
        for each in (tape, spans):
            if act == "begin":
                each.begin(tokens)
            elif act == "preempt":
                each.preempt()
            elif act == "end":
                each.end(tokens)
            else:
                each.hang_up(tokens)
        assert (tape.found, tape.kv.free) == (spans.found, spans.kv.free)
        assert tape.kv.evicted_blocks == spans.kv.evicted_blocks


def test_what_a_later_one_takes_back_costs_an_earlier_one_nothing() -> None:
    """Two prompts of 10 and 5 blocks are preempted, twice; each finds all of its own."""
    replica = Replica(in_turn=True)
    replica.begin(40)
    replica.begin(20)
    replica.preempt()
    replica.preempt()
    replica.begin(0)
    replica.begin(0)
    assert replica.found == [40, 20]
    replica.preempt()
    replica.preempt()
    replica.begin(0)
    replica.begin(0)
    assert replica.found == [40, 20, 40, 20]
