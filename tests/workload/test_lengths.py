"""Distributions of lengths against their own means and variances."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from servesim.check import ConfigError, check
from servesim.streams import Streams
from servesim.workload.batch import FloatArray
from servesim.workload.lengths import Fixed, Geometric, Lengths, Lognormal, Range, Uniform
from servesim.workload.quantiles import Quantiles
from tests.workload.theory import SAMPLES, SIGMAS, assert_mean, assert_variance

TABLE = [[0, 1, 5], [0.25, 40, 5], [0.9, 300, 260], [1, 4000, 900]]
DISTRIBUTIONS: list[Lengths] = [
    Fixed(512, 256),
    Uniform(512, 16, 0.5),
    Uniform(3, 100, 0.0),
    Range(1024, 128, 0.2),
    Range(1000, 500, 0.8, 0.1, "below", 3),
    Lognormal(1000.0, 300.0, 0.5, 1.0),
    Lognormal(800.0, 50.0, 0.0, 0.2),
    Geometric(512.0, 3.5),
    Geometric(1.0, 256.0),
    Quantiles(TABLE, 0.6),
]
NORMALS = arrays(np.float64, st.tuples(st.integers(1, 30), st.just(2)), elements=st.floats(-9, 9))
MEANS = st.floats(1, 1e7)


def normals(count: int = SAMPLES, seed: int = 0) -> FloatArray:
    return Streams(seed).stream("lengths").standard_normal((count, 2))


@pytest.mark.parametrize("lengths", DISTRIBUTIONS, ids=lambda lengths: type(lengths).__name__)
def test_mean_and_variance_of_1e5_lengths_are_those_of_theory(lengths: Lengths) -> None:
    """Each with confidence 1 - 7e-6. Rounding to whole tokens adds 1/12, far below the error here."""
    for sample, mean, variance in zip(lengths.tokens(normals()), lengths.mean, lengths.variance, strict=True):
        assert_mean(sample, mean, variance + 1 / 12)
        if variance:
            assert_variance(sample, variance)


@given(
    NORMALS,
    st.sampled_from(DISTRIBUTIONS)
    | st.builds(Geometric, MEANS, MEANS)
    | st.builds(Lognormal, MEANS, MEANS, st.floats(0, 10), st.floats(0, 10))
    | st.builds(Uniform, st.integers(1, 10**7), st.integers(1, 10**7), st.floats(0, 0.999)),
)
def test_lengths_are_whole_and_at_least_1(pairs: FloatArray, lengths: Lengths) -> None:
    for tokens in lengths.tokens(pairs):
        assert tokens.dtype == np.int64
        assert tokens.shape == (len(pairs),)
        assert np.all((tokens >= 1) & (tokens < 2**62))


@given(NORMALS, st.sampled_from(DISTRIBUTIONS), st.integers(0, 30))
def test_a_length_depends_on_the_pair_of_its_own_request_alone(
    pairs: FloatArray, lengths: Lengths, cut: int
) -> None:
    whole = lengths.tokens(pairs)
    parts = zip(lengths.tokens(pairs[:cut]), lengths.tokens(pairs[cut:]), strict=True)
    assert all(np.array_equal(a, np.concatenate(b)) for a, b in zip(whole, parts, strict=True))


@given(NORMALS, st.sampled_from(DISTRIBUTIONS))
def test_a_long_prompt_is_long_under_every_distribution(pairs: FloatArray, lengths: Lengths) -> None:
    pairs = pairs[np.argsort(pairs[:, 0])]
    assert np.all(np.diff(lengths.tokens(pairs)[0]) >= 0)


@pytest.mark.parametrize(
    "lengths", [Uniform(512, 256, 0.9), Lognormal(512.0, 256.0), Geometric(512.0, 256.0)]
)
def test_input_and_output_are_independent(lengths: Lengths) -> None:
    assert abs(np.corrcoef(*lengths.tokens(normals()))[0, 1]) <= SIGMAS / math.sqrt(SAMPLES)


@given(NORMALS, st.integers(1, 10**6), st.integers(1, 10**6), st.floats(0, 0.999))
def test_a_range_on_both_sides_is_uniform(pairs: FloatArray, prompt: int, output: int, ratio: float) -> None:
    one, other = (kind(prompt, output, ratio).tokens(pairs) for kind in (Uniform, Range))
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def limits(lengths: Lengths) -> list[tuple[int, int]]:
    """Return the shortest and the longest prompt and output."""
    extremes = np.array([[-9.0, -9.0], [9.0, 9.0]])
    return [(int(tokens[0]), int(tokens[1])) for tokens in lengths.tokens(extremes)]


def test_the_ranges_are_those_of_the_load_generators() -> None:
    """vLLM: about the prompt without its special tokens; the first vLLM and InferenceX: below."""
    assert limits(Range(1024, 128, 0.2)) == [(819, 1229), (102, 154)]
    assert limits(Range(1024, 128, 0.2, special_tokens=1)) == [(1 + 818, 1 + 1228), (102, 154)]
    assert limits(Range(1024, 128, 0.2, 0.0)) == [(819, 1229), (128, 128)]
    assert limits(Range(1024, 128, 0.8, side="below")) == [(819, 1024), (102, 128)]
    assert limits(Range(1024, 128, 1.0, side="below")) == [(1024, 1024), (128, 128)]
    assert limits(Range(1024, 128, 0.0, side="below")) == [(1, 1024), (1, 128)]


def test_a_range_that_vllm_refuses_is_refused() -> None:
    with pytest.raises(ConfigError) as refused:
        check(Range(4, 8, 1.0, 1.0, special_tokens=4))
    wrong = [problem.path for problem in refused.value.problems]
    assert wrong == ["range_ratio", "output_range_ratio", "special_tokens"]


def test_every_length_of_a_range_is_equally_likely() -> None:
    counts = np.bincount(Uniform(4, 1, 0.5).tokens(normals())[0])
    assert np.flatnonzero(counts).tolist() == [2, 3, 4, 5, 6]
    assert np.all(np.abs(counts[2:] - SAMPLES / 5) <= SIGMAS * math.sqrt(SAMPLES * 0.2 * 0.8))


@pytest.mark.parametrize(
    ("length", "ratio", "low", "high"),
    [(10, 0.25, 7, 13), (1, 0.5, 1, 2), (100, 0.0, 100, 100), (4, 0.99, 1, 8)],
)
def test_a_range_is_widened_to_whole_tokens(length: int, ratio: float, low: int, high: int) -> None:
    ends = Uniform(length, length, ratio).tokens(np.array([[-9.0, 9.0], [9.0, -9.0]]))
    assert [tokens.tolist() for tokens in ends] == [[low, high], [high, low]]


def test_a_request_outlives_k_tokens_with_probability_1_minus_1_over_mean_to_the_k() -> None:
    tokens = Geometric(20.0, 1.0).tokens(normals())[0]
    for k in (1, 10, 20, 60):
        share = (1 - 1 / 20) ** k
        assert_mean((tokens > k).astype(float), share, share * (1 - share))


def test_the_median_of_a_lognormal_lies_below_its_mean() -> None:
    """exp(mu) = mean / sqrt(1 + cv^2) = 1000 / sqrt 5."""
    median = Lognormal(1000.0, 1000.0, 2.0, 0.0).tokens(np.zeros((1, 2)))
    assert [tokens.tolist() for tokens in median] == [[447], [1000]]


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        (Fixed(0, 1), r"input = 0: must be at least 1 .*\(tokens\)"),
        (Fixed(1, -1), r"output = -1: must be at least 1 .*\(tokens\)"),
        (Fixed(1.5, 1), r"input = 1.5: must be a whole number \(tokens\)"),  # type: ignore[arg-type]
        (Geometric(0.5, 1.0), r"input = 0.5: must be at least 1"),
        (Geometric(1.0, math.inf), "output = inf: must be"),
        (Lognormal(math.nan, 1.0), "input = nan: must be"),
        (Lognormal(1.0, 1.0, -1.0), "input_cv = -1.0: must be at least 0"),
        (Lognormal(1.0, 1.0, 1.0, 11.0), "output_cv = 11.0: must be at least 0 and at most 10"),
        (Uniform(10, 10, 1.0), "range_ratio = 1.0: must be"),
        (Uniform(10, 10, -0.1), "range_ratio = -0.1: must be"),
    ],
)
def test_impossible_lengths_are_refused(lengths: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check(lengths, "workload.lengths")
