"""The sums that stand for a decode batch, against a batch that is a list."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servesim.engine.decodes import Decodes
from servesim.workload.request import Request


def decoding(computed: int, output_tokens: int = 100) -> Request:
    """Return a request with so many computed tokens, its first token emitted."""
    request = Request(0, 0.0, computed, output_tokens)
    request.computed, request.generated = computed, 1
    return request


def test_context_counts_the_tokens_under_way() -> None:
    """Sequences with 5 and 8 computed tokens read 6 + 9 in the next step, and 7 + 10 in the one after."""
    decodes = Decodes(block_size=4)
    decodes.join(decoding(5))
    decodes.join(decoding(8))
    assert decodes.context() == 15
    decodes.step += 1
    assert decodes.context() == 17


def test_a_full_block_needs_another() -> None:
    """Blocks of 4: the sequence of 8 takes one in the next step, the one of 5 after three more."""
    decodes = Decodes(block_size=4)
    decodes.join(decoding(5))
    decodes.join(decoding(8))
    assert decodes.blocks() == 1
    assert [decodes.blocks_after(steps) for steps in range(6)] == [0, 0, 0, 1, 2, 2]


def test_steps_that_fit_into_the_free_blocks() -> None:
    """Behind the next step, two sequences take a block each in every fourth step."""
    decodes = Decodes(block_size=4)
    decodes.join(decoding(5))
    decodes.join(decoding(8))
    assert [decodes.steps_that_fit(free, 100) for free in range(5)] == [2, 3, 6, 7, 10]
    assert decodes.steps_that_fit(1, 2) == 2


def test_a_sequence_finishes_when_its_outputs_are_out() -> None:
    """One token is out: 4 steps emit the other four of 5."""
    decodes = Decodes(block_size=4)
    request = decoding(3, output_tokens=5)
    decodes.join(request)
    assert decodes.steps_to_finish() == 4
    decodes.step += 3
    assert decodes.pop_finished() == []
    decodes.step += 1
    assert decodes.pop_finished() == [request]
    assert decodes.count == 0


def test_equals_finish_in_the_order_of_joining() -> None:
    decodes = Decodes(block_size=1)
    pair = [decoding(9, output_tokens=2), decoding(3, output_tokens=2)]
    for request in pair:
        decodes.join(request)
    decodes.step += 1
    assert decodes.pop_finished() == pair


def test_who_leaves_early_is_brought_up_to_date() -> None:
    decodes = Decodes(block_size=4)
    request, other = decoding(5), decoding(8, output_tokens=50)
    decodes.join(request)
    decodes.join(other)
    decodes.step += 3
    decodes.leave(request)
    assert (request.computed, request.generated) == (8, 4)
    assert decodes.count == 1
    assert decodes.context() == 12
    assert decodes.steps_to_finish() == 46


def test_update_brings_everybody_up_to_date() -> None:
    decodes = Decodes(block_size=4)
    request = decoding(5)
    decodes.join(request)
    decodes.step += 2
    decodes.update()
    assert (request.computed, request.generated) == (7, 3)


@dataclass
class Batch:
    """A decode batch as a plain list of sequences."""

    block_size: int
    tokens: dict[Request, int] = field(default_factory=dict)

    def blocks(self) -> int:
        """Return the blocks held."""
        return sum(ceil(tokens / self.block_size) for tokens in self.tokens.values())

    def step(self) -> None:
        """Compute one token of each sequence."""
        self.tokens = {request: tokens + 1 for request, tokens in self.tokens.items()}


@settings(max_examples=60)
@given(
    block_size=st.sampled_from((1, 2, 7, 16)),
    joins=st.lists(
        st.tuples(st.integers(0, 9), st.integers(1, 40), st.integers(2, 30)), min_size=1, max_size=12
    ),
)
def test_sums_are_those_of_a_list(block_size: int, joins: list[tuple[int, int, int]]) -> None:
    """Sequences join between steps and leave when they finish; every step, all sums agree."""
    decodes, batch = Decodes(block_size), Batch(block_size)
    for pause, computed, output_tokens in [*joins, (99, 1, 2)]:
        for _ in range(pause):
            if not decodes.count:
                break
            before = batch.blocks()
            assert decodes.context() == sum(batch.tokens.values()) + decodes.count
            batch.step()
            assert decodes.blocks() == batch.blocks() - before
            decodes.step += 1
            for request in decodes.pop_finished():
                assert batch.tokens.pop(request) == request.input_tokens + request.output_tokens - 1
        request = decoding(computed, output_tokens)
        decodes.join(request)
        batch.tokens[request] = computed
        assert decodes.count == len(batch.tokens)
        assert decodes.steps_to_finish() == min(
            request.input_tokens + request.output_tokens - 1 - tokens
            for request, tokens in batch.tokens.items()
        )


@given(
    block_size=st.sampled_from((1, 2, 7, 16)),
    lengths=st.lists(st.integers(1, 60), min_size=1, max_size=8),
    free=st.integers(0, 60),
    limit=st.integers(1, 90),
)
def test_the_steps_that_fit_are_the_most_whose_blocks_are_free(
    block_size: int, lengths: list[int], free: int, limit: int
) -> None:
    decodes = Decodes(block_size)
    for computed in lengths:
        decodes.join(decoding(computed))
    needs = [decodes.blocks_after(steps) for steps in range(limit + 1)]
    assert needs == sorted(needs)
    assert decodes.steps_that_fit(free, limit) == max(n for n, need in enumerate(needs) if need <= free)


@pytest.mark.parametrize("steps", range(40))
def test_blocks_of_a_leap_are_those_of_its_steps(steps: int) -> None:
    """One leap of n steps takes what n single steps take."""
    decodes = Decodes(block_size=7)
    for computed in (1, 5, 7, 13, 14):
        decodes.join(decoding(computed))
    leap = decodes.blocks_after(steps)
    single = 0
    for _ in range(steps):
        decodes.step += 1
        single += decodes.blocks()
    assert leap == single
