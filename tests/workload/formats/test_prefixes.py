"""The spans of prompts say what their blocks say: who begins alike, and how far."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim.engine.continuous import Continuous
from servesim.streams import Streams
from servesim.workload.description import Description
from servesim.workload.formats import read
from servesim.workload.formats.prefixes import Spans, chained, shared_spans
from servesim.workload.formats.recording import Blocks
from servesim.workload.trace import Trace
from tests.engine.test_mooncake_hits import TOKENS, hits_of_a_queue
from tests.serving import Service
from tests.shared import shared_data

Chain = tuple[tuple[int, int], ...]
PROMPTS = st.lists(
    st.tuples(st.lists(st.integers(0, 2), max_size=5), st.integers(1, 24)), min_size=1, max_size=8
)


def of(prompts: list[list[int]], tokens: int) -> Blocks:
    counts = [len(ids) for ids in prompts]
    ids = np.array([each for ids in prompts for each in ids], dtype=np.uint64)
    return Blocks(ids, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), tokens)


def chains(spans: Spans) -> list[Chain]:
    return list(spans.of(0, len(spans.starts) - 1))


def alike(one: Chain, other: Chain) -> int:
    """Return how many tokens two prompts have in common, as an origin's spans say it."""
    common = 0
    for (key, end), (other_key, other_end) in zip(one, other, strict=False):
        if key != other_key:
            break
        common = min(end, other_end)
        if end != other_end:
            break
    return common


def looked_up(own: Chain, seen: dict[int, int]) -> int:
    """Return the tokens of a prompt that are in an endless cache, and put all of them there."""
    found, whole = 0, True
    for key, end in own:
        had = seen.get(key, 0)
        if whole:
            found, whole = max(found, min(had, end)), had >= end
        seen[key] = max(had, end)
    return found


def alike_in_blocks(one: list[int], other: list[int]) -> int:
    common = 0
    for mine, its in zip(one, other, strict=False):
        if mine != its:
            break
        common += 1
    return common


@given(PROMPTS)
def test_prompts_share_spans_exactly_as_far_as_their_blocks_agree(drawn: list[tuple[list[int], int]]) -> None:
    """Ids that follow different ones are told apart: who has but the last block in common shares nothing."""
    prompts, lengths = [ids for ids, _ in drawn], [length for _, length in drawn]
    found = chains(shared_spans(of(prompts, 4), np.array(lengths)))
    for i, j in combinations(range(len(prompts)), 2):
        blocks = alike_in_blocks(prompts[i], prompts[j])
        assert alike(found[i], found[j]) == min(4 * blocks, lengths[i], lengths[j])


@given(PROMPTS)
def test_spans_are_in_order_within_the_prompt_and_few(
    drawn: list[tuple[list[int], int]],
) -> None:
    prompts, lengths = [ids for ids, _ in drawn], [length for _, length in drawn]
    found = chains(shared_spans(of(prompts, 4), np.array(lengths)))
    for own, length in zip(found, lengths, strict=True):
        ends = [end for _, end in own]
        assert ends == sorted(set(ends))
        assert all(0 < end <= length for end in ends)
    assert all(len(own) < len(prompts) for own in found)  # a branching for each other prompt at the most


def test_a_span_ends_where_prompts_part() -> None:
    blocks = of([[1, 2, 3, 4], [1, 2, 3, 5], [1, 2, 7], [1, 2, 7], [9]], 10)
    assert chains(shared_spans(blocks, np.array([40, 35, 25, 30, 8]))) == [
        ((0, 20), (2, 30)),
        ((0, 20), (2, 30)),
        ((0, 20), (5, 25)),
        ((0, 20), (5, 30)),
        (),
    ]


def test_ids_that_stand_for_all_before_them_are_kept() -> None:
    kept, told_apart = of([[1, 2, 3], [1, 2], [4]], 16), of([[1, 2, 3], [4, 2, 3]], 16)
    assert chained(kept) is kept
    assert chained(told_apart).ids.tolist() == [0, 1, 2, 3, 4, 5]
    assert chained(of([[]], 16)).ids.size == 0


def test_mooncakes_prompts_share_what_an_endless_cache_would_find() -> None:
    recording = read(shared_data("traces", "mooncake_synthetic.jsonl.gz"), "mooncake").by_time()
    assert recording.blocks is not None
    seen: dict[int, int] = {}
    spans = chains(shared_spans(recording.blocks, recording.input_tokens))
    found = sum(looked_up(own, seen) for own in spans)
    reuse = Description(recording).reuse
    assert reuse is not None
    assert found == reuse.tokens.sum()
    assert found / recording.input_tokens.sum() > 0.5


@pytest.mark.parametrize("capacity", [400, 10_000])
def test_a_cache_finds_by_spans_what_it_would_find_by_blocks(capacity: int) -> None:
    """In a cache that is too small for all: what nobody else asks for goes first, named or not."""
    path = shared_data("traces", "mooncake_synthetic.jsonl.gz")
    (batch,) = Trace(str(path), at_once=True).batches(Streams(0))
    service = Service(
        Continuous(max_num_seqs=1, block_size=TOKENS), kv_blocks=capacity, origins=list(batch.origins or [])
    )
    run = service.serve(list(zip(*(column.tolist() for column in batch[:3]), strict=True)))
    assert sum(row["cached_tokens"] for row in run.completed) == hits_of_a_queue(capacity)
