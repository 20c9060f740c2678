"""Streams: one seed, many independent generators."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from servesim.streams import Streams

SEEDS = st.integers(0, 2**63)


@given(SEEDS, st.text())
def test_a_stream_depends_on_seed_and_name_alone(seed: int, name: str) -> None:
    streams = Streams(seed)
    streams.stream("something else").random(10)
    streams.stream(name).random(10)
    assert np.array_equal(streams.stream(name).random(10), Streams(seed).stream(name).random(10))


@given(SEEDS)
def test_another_name_is_another_stream(seed: int) -> None:
    streams = Streams(seed)
    assert not np.array_equal(streams.stream("arrivals").random(4), streams.stream("lengths").random(4))


@given(SEEDS)
def test_another_seed_is_another_stream(seed: int) -> None:
    assert not np.array_equal(Streams(seed).stream("a").random(4), Streams(seed + 1).stream("a").random(4))


def test_streams_of_neighbouring_seeds_and_names_are_uncorrelated() -> None:
    """Of the 28 correlations of 1e5 draws none passes 4.5 standard errors (chance: 2e-4)."""
    names = ["arrivals", "lengths", "router", "routes"]
    draws = [Streams(seed).stream(name).random(10**5) for seed in (0, 1) for name in names]
    correlations = np.corrcoef(draws)[np.triu_indices(len(draws), 1)]
    assert np.abs(correlations).max() < 4.5 / np.sqrt(10**5)


def test_the_first_numbers_of_a_stream_stay_what_they_are() -> None:
    """A golden value: changing how streams are derived changes every published result."""
    assert Streams(0).stream("arrivals").integers(0, 10**6, 3).tolist() == [539792, 436449, 840823]
