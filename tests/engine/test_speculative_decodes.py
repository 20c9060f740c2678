"""The sums that stand for a speculative batch, against a batch that is a list."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servesim.engine.decodes import Decodes
from servesim.engine.speculative_decodes import SpeculativeDecodes
from servesim.engine.token_draws import TokenDraws
from servesim.workload.request import Request


@dataclass(frozen=True)
class Steady:
    """Draws that take so many steps for so many tokens."""

    tokens: int
    of_steps: int = 1

    def steps(self, request: int, tokens: int) -> int:
        """Return the steps of so many tokens."""
        return -(-tokens * self.of_steps // self.tokens)


def batch(block_size: int, draws: Steady, slots: int) -> SpeculativeDecodes:
    """Return an empty batch."""
    return SpeculativeDecodes(block_size, cast(TokenDraws, draws), slots)


def decoding(computed: int, output_tokens: int, generated: int = 1) -> Request:
    """Return a request with so many computed tokens, its first token emitted."""
    request = Request(0, 0.0, computed + 1 - generated, output_tokens)
    request.computed, request.generated = computed, generated
    return request


def test_two_tokens_a_step() -> None:
    """Behind 5 tokens, 6 more come in 3 steps of 2; with blocks of 4 and room for 3 tokens ahead."""
    decodes = batch(4, Steady(2), slots=3)
    decodes.join(request := decoding(5, 7))
    assert decodes.steps_to_finish() == 3
    assert (decodes.context(), decodes.growth()) == (6, 2)
    assert decodes.blocks() == 0  # 5 + 3 tokens fill the 2 blocks that it has
    assert [decodes.blocks_after(steps) for steps in range(3)] == [0, 1, 1]  # 10 tokens, then the end, 11
    decodes.step += 1
    assert decodes.leave(request) == 0  # its 7 tokens need the 2 blocks that it has
    assert (request.computed, request.generated) == (7, 3)
    assert (decodes.count, decodes.context(), decodes.growth()) == (0, 0, 0)


def test_one_that_comes_back_goes_on_at_its_rate() -> None:
    """30 tokens in 20 steps; with 15 still to come there are 10 steps left."""
    decodes = batch(16, Steady(3, 2), slots=3)
    decodes.join(decoding(50, 31, generated=16))
    assert decodes.steps_to_finish() == 10
    assert decodes.growth() == pytest.approx(1.5)


@dataclass
class Listed:
    """One sequence of a batch that is a list."""

    computed: int
    tokens: int
    steps: int
    done: int = 0

    @property
    def now(self) -> int:
        """Tokens of its KV."""
        return self.computed + self.done * self.tokens // self.steps

    @property
    def exact(self) -> float:
        """The same with the fraction of a token."""
        return self.computed + self.done * self.tokens / self.steps

    def held(self, size: int, slots: int) -> int:
        """Blocks that it holds in the next step."""
        return ceil(min(self.now + slots, self.computed + self.tokens) / size)


@settings(max_examples=80)
@given(
    block_size=st.sampled_from((1, 2, 7, 16)),
    queries=st.integers(2, 5),
    lookahead=st.integers(0, 4),
    steps_of_ten=st.integers(10, 50),
    joins=st.lists(
        st.tuples(st.integers(0, 9), st.integers(1, 40), st.integers(2, 60), st.booleans()),
        min_size=1,
        max_size=12,
    ),
)
def test_sums_are_those_of_a_list(
    block_size: int,
    queries: int,
    lookahead: int,
    steps_of_ten: int,
    joins: list[tuple[int, int, int, bool]],
) -> None:
    """Sequences join, finish and are thrown out between steps; every step, all sums agree."""
    draws = Steady(min(steps_of_ten, 10 * queries), 10)
    slots = queries + lookahead
    decodes = batch(block_size, draws, slots)
    listed: dict[Request, Listed] = {}
    held: dict[Request, int] = {}
    for pause, computed, output_tokens, thrown_out in [*joins, (99, 1, 2, False)]:
        for _ in range(pause):
            if not decodes.count:
                break
            assert decodes.context() == pytest.approx(sum(one.exact + 1 for one in listed.values()))
            needs = {request: one.held(block_size, slots) for request, one in listed.items()}
            assert decodes.blocks() == sum(needs.values()) - sum(held.values())
            held = needs
            assert decodes.steps_to_finish() == min(one.steps - one.done for one in listed.values())
            decodes.step += 1
            for one in listed.values():
                one.done += 1
            finished = [request for request, one in listed.items() if one.done == one.steps]
            assert decodes.pop_finished() == finished
            for request in finished:
                one = listed.pop(request)
                assert held.pop(request) == ceil((one.computed + one.tokens) / block_size)
        if thrown_out and listed:
            request, one = listed.popitem()
            assert decodes.leave(request) == held.pop(request) - ceil(one.now / block_size)
            assert request.computed == one.now
        request = decoding(computed, output_tokens)
        decodes.join(request)
        steps = draws.steps(0, output_tokens - 1)
        listed[request] = Listed(computed, output_tokens - 1, steps)
        held[request] = ceil(computed / block_size)
        assert decodes.count == len(listed)


@given(
    block_size=st.sampled_from((1, 2, 7, 16)),
    lengths=st.lists(st.integers(1, 60), min_size=1, max_size=8),
    free=st.integers(0, 60),
)
def test_the_steps_that_fit_are_the_most_whose_blocks_are_free(
    block_size: int, lengths: list[int], free: int
) -> None:
    decodes = batch(block_size, Steady(7, 3), slots=4)
    for computed in lengths:
        decodes.join(decoding(computed, 150))
    limit = decodes.steps_to_finish() - 1
    needs = [decodes.blocks_after(steps) for steps in range(limit + 1)]
    assert decodes.steps_that_fit(free, limit) == max(n for n, need in enumerate(needs) if need <= free)


@given(
    block_size=st.sampled_from((1, 2, 7, 16)),
    lengths=st.lists(st.integers(1, 60), min_size=1, max_size=8),
    steps=st.integers(0, 40),
)
def test_one_token_a_step_is_plain_decoding(block_size: int, lengths: list[int], steps: int) -> None:
    """Where every draft is rejected and no slot is kept for it, all is as without one, to the bit."""
    plain, decodes = Decodes(block_size), batch(block_size, Steady(1), slots=1)
    for computed in lengths:
        plain.join(decoding(computed, 90))
        decodes.join(decoding(computed, 90))
    for _ in range(steps):
        assert decodes.blocks() == plain.blocks()
        plain.step += 1
        decodes.step += 1
    assert decodes.context() == plain.context()
    assert decodes.blocks_after(40) == plain.blocks_after(40)
    assert decodes.steps_to_finish() == plain.steps_to_finish()


def test_places_of_steps_long_past_are_given_up() -> None:
    decodes = batch(4, Steady(1), slots=1)
    decodes.join(decoding(4, 10**6))
    decodes.step += 200_000
    decodes.join(request := decoding(3, 20))
    assert decodes.blocks() == 1  # the long one's, which has filled its last one
    assert decodes.blocks_after(1) == 1  # the other's
    decodes.leave(request)
    assert [decodes.blocks_after(steps) for steps in (3, 4)] == [0, 1]
