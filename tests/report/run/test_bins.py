"""Binned amounts add up to what went in, and lie where they accrued."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim.report.run.bins import binned, edges, steps_line

TIMES = st.floats(0, 100, allow_nan=False)
STRETCHES = st.lists(st.tuples(TIMES, TIMES, st.floats(0, 1e15)), max_size=40)


@given(STRETCHES, st.integers(1, 50))
def test_the_total_is_kept(stretches: list[tuple[float, float, float]], bins: int) -> None:
    starts, ends, amounts = (np.array([each[i] for each in stretches], dtype=float) for i in range(3))
    starts, ends = np.minimum(starts, ends), np.maximum(starts, ends)
    got = binned(starts, ends, amounts, edges(0, 100, bins))
    assert len(got) == bins
    assert np.all(got >= 0)
    assert got.sum() == pytest.approx(amounts.sum(), rel=1e-9)


@given(STRETCHES)
def test_finer_bins_add_up_to_coarser_ones(stretches: list[tuple[float, float, float]]) -> None:
    starts, ends, amounts = (np.array([each[i] for each in stretches], dtype=float) for i in range(3))
    starts, ends = np.minimum(starts, ends), np.maximum(starts, ends) + 1e-3
    fine, coarse = (binned(starts, ends, amounts, edges(0, 101, bins)) for bins in (40, 10))
    np.testing.assert_allclose(fine.reshape(10, 4).sum(axis=1), coarse, rtol=1e-9, atol=1e-9 * amounts.sum())


def test_an_even_stretch_is_shared_by_overlap() -> None:
    np.testing.assert_allclose(binned([1.5], [4.0], [10.0], edges(0, 5, 5)), [0, 2, 4, 4, 0])


def test_what_lies_beyond_the_edges_does_not_count() -> None:
    np.testing.assert_allclose(binned([-1, 1, 7], [1, 3, 8], [4, 4, 4], edges(0, 2, 2)), [2, 2])


def test_a_stretch_of_no_length_is_in_one_bin() -> None:
    np.testing.assert_allclose(binned([1, 2, 9], [1, 2, 9], [3, 5, 7], edges(0, 2, 2)), [0, 8])


def test_a_run_without_length_has_a_bin() -> None:
    np.testing.assert_array_equal(edges(3, 3), [3, 4])


def test_a_line_is_level_within_each_bin() -> None:
    x, y = steps_line(np.array([0.0, 1.0, 2.0]), [5.0, 6.0])
    np.testing.assert_array_equal(x, [0, 1, 2])
    np.testing.assert_array_equal(y, [5, 6, 6])
