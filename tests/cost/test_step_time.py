"""The sizes that steps are padded to."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from servesim.cost.step_time import GraphSizes


def test_sizes_are_those_of_vllm() -> None:
    """What vLLM logs as cudagraph_capture_sizes for 256 or more sequences: 51 sizes up to 512."""
    sizes = GraphSizes(1024, 8192).sizes
    assert sizes == [1, 2, 4, *range(8, 256, 8), *range(256, 513, 16)]
    assert len(sizes) == 51


def test_sizes_end_at_twice_the_sequences_and_at_the_token_budget() -> None:
    assert GraphSizes(5, 8192).sizes == [1, 2, 4, 8]
    assert GraphSizes(1, 8192).sizes == [1, 2]
    assert GraphSizes(150, 8192).sizes[-2:] == [272, 288]
    assert GraphSizes(256, 20).sizes == [1, 2, 4, 8, 16]
    assert GraphSizes(256, 1).sizes == [1]


def test_steps_above_the_largest_size_are_not_padded() -> None:
    graphs = GraphSizes(5, 8192)
    assert [graphs.padded(tokens) for tokens in (1, 3, 5, 8, 9, 100)] == [1, 4, 8, 8, 9, 100]


@given(seqs=st.integers(1, 400), budget=st.integers(1, 9000), tokens=st.integers(1, 10_000))
def test_padding_never_shrinks_and_keeps_the_order(seqs: int, budget: int, tokens: int) -> None:
    graphs = GraphSizes(seqs, budget)
    padded = graphs.padded(tokens)
    assert tokens <= padded <= graphs.padded(tokens + 1)
    assert graphs.padded(padded) == padded
    assert graphs.padded_array(np.array([tokens, tokens + 1.0])).tolist() == [
        padded,
        graphs.padded(tokens + 1),
    ]
