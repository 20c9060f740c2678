"""Order statistics of runs: equal to sorting every value, however narrow the brackets have to become."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from servesim.results import order
from servesim.results.runs import Runs
from servesim.results.statistics import describe, describe_runs

FIRST = st.sampled_from([0.0, 1e-3, 0.01, 0.01 * (1 + 1e-12), 0.02, 5.0]) | st.floats(0, 100)
INCREMENT = st.sampled_from([0.0, 1e-18, 1e-17, 1e-9, 3.3e-7, 1e-4, 0.01]) | st.floats(0, 1)
RUN = st.tuples(FIRST, INCREMENT, st.integers(0, 3), st.integers(1, 30), st.integers(1, 5))
SAMPLE = st.lists(st.lists(RUN, min_size=1, max_size=6), min_size=1, max_size=3)


def made(parts: list[list[tuple[float, float, int, int, int]]]) -> list[Runs]:
    """Return parts of runs from (first, increment, start, places, weight)."""
    found = []
    for part in parts:
        first, increment, start, places, weight = (np.array(column) for column in zip(*part, strict=True))
        found.append(Runs(first * 1.0, increment * 1.0, start, start + places, weight))
    return found


def naive(parts: list[Runs]) -> np.ndarray:
    """Return every value, as often as its weight says, one by one."""
    return np.array(
        [
            run[0] + place * run[1]
            for part in parts
            for run in zip(*part, strict=True)
            for place in range(run[2], run[3])
            for _ in range(run[4])
        ]
    )


@given(SAMPLE, st.integers(1, 40), st.integers(2, 8), st.integers(1, 50))
@example([[(0.0125, 0.0, 0, 30, 5)] * 3], 1, 2, 1)
def test_runs_are_described_as_their_values_are(
    sample: list[list[tuple[float, float, int, int, int]]], few: int, bits: int, at_once: int
) -> None:
    """Percentiles, min and max equal numpy's on the expanded sample to the last bit; mean and std closely."""
    parts = made(sample)
    with patch.multiple(order, FEW=few, BINS=1 << bits, AT_ONCE=at_once):
        got = describe_runs(lambda: iter(parts))
    wanted = describe(naive(parts))
    for name in ("mean", "std"):
        scale = wanted["max"] if name == "std" else wanted[name]
        assert abs(got.pop(name) - wanted.pop(name)) <= 1e-7 * scale
    assert got == wanted


def test_a_million_values_are_described_without_expanding_them() -> None:
    """Half a million places of leaps that lie close together: more than is sorted at once, in two bins."""
    rng = np.random.default_rng(7)
    size = 2000
    places = rng.integers(1, 500, size)
    first, increment = 0.0125 + 1e-9 * rng.integers(0, 50, size), 1e-9 * rng.integers(1, 4, size)
    runs = Runs(first, increment, np.zeros_like(places), places, rng.integers(1, 3, size))
    got, wanted = describe_runs(lambda: iter([runs])), describe(np.repeat(*runs.expanded()))
    assert got.pop("mean") == pytest.approx(wanted.pop("mean"), rel=1e-12)
    assert got.pop("std") == pytest.approx(wanted.pop("std"), rel=1e-9)
    assert got == wanted
