"""The Pareto front."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from servesim.frontier.pareto import dominated, on_front

FEW = st.sampled_from([0.0, 1.0, 2.0, 3.0, np.inf, np.nan])  # ties are frequent
POINTS = st.integers(1, 3).flatmap(
    lambda axes: arrays(np.float64, st.tuples(st.integers(0, 12), st.just(axes)), elements=FEW)
)


def beats(one: np.ndarray, other: np.ndarray, maximise: list[bool]) -> bool:
    """Compare two points axis by axis, as the definition says."""
    pairs = [(a, b) if more else (b, a) for a, b, more in zip(one, other, maximise, strict=True)]
    return all(a >= b for a, b in pairs) and any(a > b for a, b in pairs)


@given(POINTS, st.lists(st.booleans(), min_size=3, max_size=3))
def test_a_point_is_dominated_where_another_one_beats_it(points: np.ndarray, more: list[bool]) -> None:
    maximise = more[: points.shape[1]]
    expected = [any(beats(rival, point, maximise) for rival in points) for point in points]
    assert dominated(points, maximise).tolist() == expected


@given(POINTS, st.lists(st.booleans(), min_size=3, max_size=3))
def test_every_point_is_on_the_front_or_dominated_or_not_comparable(
    points: np.ndarray, more: list[bool]
) -> None:
    maximise = more[: points.shape[1]]
    unknown = np.isnan(points).any(axis=1)
    front, beaten = on_front(points, maximise), dominated(points, maximise)
    assert not (front & beaten).any()
    assert (front | beaten | unknown).all()
    assert not (front & unknown).any()
    assert front.any() or unknown.all()


@given(POINTS, st.lists(st.booleans(), min_size=3, max_size=3), st.randoms())
def test_the_front_depends_neither_on_order_nor_on_what_is_dominated(
    points: np.ndarray, more: list[bool], random: object
) -> None:
    maximise = more[: points.shape[1]]
    order = list(range(len(points)))
    random.shuffle(order)  # type: ignore[attr-defined]
    assert on_front(points[order], maximise).tolist() == on_front(points, maximise)[order].tolist()
    front = points[on_front(points, maximise)]
    assert on_front(front, maximise).all()


def test_equal_points_are_on_the_front_together() -> None:
    points = [[1, 1], [1, 1], [0, 2], [0, 0]]
    assert on_front(points, [True, True]).tolist() == [True, True, True, False]
    assert on_front(points, [False, False]).tolist() == [False, False, False, True]
    assert on_front(points, [True, False]).tolist() == [True, True, False, True]


def test_a_table_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match="rows of 2 numbers"):
        dominated([[1, 2, 3]], [True, False])
    with pytest.raises(ValueError, match="rows of 1 numbers"):
        on_front([1, 2, 3], [True])
