"""Where curves turn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim.frontier.knee import knee

X = np.arange(1.0, 21.0)


@given(st.integers(3, 17), st.floats(-5, 5), st.floats(0.5, 50))
def test_two_straight_lines_meet_at_the_knee(corner: int, slope: float, turn: float) -> None:
    y = slope * X + turn * (abs(slope) + 1) * np.maximum(X - X[corner], 0)
    assert knee(X, y) == corner


@given(st.integers(2, 17), st.floats(0.1, 100), st.floats(-100, 100), st.randoms())
def test_scale_offset_and_order_do_not_matter(
    corner: int, scale: float, offset: float, random: object
) -> None:
    y = np.minimum(X, X[corner])
    order = np.arange(len(X))
    random.shuffle(order)  # type: ignore[attr-defined]
    found = knee(X[order] * scale + offset, -3 * scale * y[order] + offset)
    assert found is not None
    assert order[found] == corner


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([], []),
        ([1], [1]),
        ([1, 2], [1, 5]),
        ([1, 2, 3, 4], [2, 4, 6, 8]),
        ([1, 2, 3, 4], [5, 5, 5, 5]),
        ([3, 3, 3], [1, 2, 9]),
        ([1, 2, 3], [1, np.nan, 9]),
    ],
)
def test_there_is_none_in_a_straight_line_or_in_too_few_points(x: list[float], y: list[float]) -> None:
    assert knee(x, y) is None


def test_what_is_not_known_is_passed_over() -> None:
    y = np.minimum(X, 10.0)
    y[[0, 3, 15]] = np.nan
    y[19] = np.inf
    assert knee(X, y) == 9
