"""How the benchmarks of experts spread tokens."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.fit.routing import load, tokens_per_expert

DISTRIBUTIONS = ["balanced", "power_law_1.01", "power_law_1.2"]


@given(
    tokens=st.integers(1, 5000),
    top_k=st.integers(1, 8),
    experts=st.integers(8, 300),
    distribution=st.sampled_from(DISTRIBUTIONS),
)
def test_every_assignment_has_an_expert_and_no_token_the_same_one_twice(
    tokens: int, top_k: int, experts: int, distribution: str
) -> None:
    counts = tokens_per_expert(tokens, top_k, experts, distribution)
    assert counts.sum() == tokens * top_k
    assert counts.min() >= 0
    assert counts.max() <= tokens


def test_a_power_law_is_uneven_and_a_steeper_one_more_so() -> None:
    shares = [tokens_per_expert(4096, 8, 128, each).max() / (4096 * 8 / 128) for each in DISTRIBUTIONS]
    assert shares[0] == 1
    assert 2 < shares[1] < shares[2]


def test_load_by_hand() -> None:
    """3 tokens to 2 of 8 experts each: 6 are hit. 100 each of 8: padded to 128 each."""
    assert load(3, 2, 8, "balanced") == (6, 6 * 64)
    assert load(400, 2, 8, "balanced") == (8, 8 * 128)


def test_counts_that_are_short_are_raised_from_the_bottom() -> None:
    counts = np.sort(tokens_per_expert(2, 2, 64, "power_law_1.2"))
    assert counts.tolist() == [0] * 60 + [1] * 4 or counts.sum() == 4
    assert counts[-1] <= 2


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_more_tokens_hit_no_fewer_experts(distribution: str) -> None:
    hits = [load(tokens, 8, 128, distribution)[0] for tokens in (1, 2, 4, 8, 16, 64, 256, 1024)]
    assert hits == sorted(hits)
