"""A band holds the boxes of its points and the straight lines between them, and turns one way."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import ConvexHull

from servesim.report.frontier.bands import band

ends = st.tuples(st.floats(-100, 100), st.floats(0.01, 50))
boxes = st.tuples(ends, ends).map(lambda two: (two[0][0], sum(two[0]), two[1][0], sum(two[1])))


def outlines(x, y):
    """Return the closed outlines of a band as arrays of corners."""
    table = np.column_stack([np.array(x, float), np.array(y, float)])
    parts = np.split(table, np.flatnonzero(np.isnan(table[:, 0])))
    return [part[~np.isnan(part[:, 0])] for part in parts]


def holds(outline, point):
    """Say whether a convex outline that turns left holds a point."""
    along, to = np.diff(outline, axis=0), np.asarray(point) - outline[:-1]
    return bool((along[:, 0] * to[:, 1] - along[:, 1] * to[:, 0] >= -1e-6).all())


def area(outline):
    x, y = outline[:, 0], outline[:, 1]
    return float((x[:-1] * y[1:] - x[1:] * y[:-1]).sum() / 2)


@given(st.lists(boxes, min_size=2, max_size=6))
def test_every_outline_is_the_convex_hull_of_two_neighbouring_boxes(points):
    made = outlines(*band(points, range(len(points) - 1)))
    assert len(made) == len(points) - 1
    for outline, one, other in zip(made, points, points[1:], strict=False):
        corners = [(x, y) for box in (one, other) for x in box[:2] for y in box[2:]]
        assert all(holds(outline, corner) for corner in corners)
        np.testing.assert_allclose(area(outline), ConvexHull(corners).volume, rtol=1e-6)


@given(st.lists(boxes, min_size=2, max_size=6), st.floats(0, 1))
def test_what_lies_between_two_points_is_in_the_band(points, share):
    middles = [np.array([(box[0] + box[1]) / 2, (box[2] + box[3]) / 2]) for box in points]
    made = outlines(*band(points, range(len(points) - 1)))
    for outline, one, other in zip(made, middles, middles[1:], strict=False):
        assert holds(outline, share * one + (1 - share) * other)


def test_a_point_that_no_line_reaches_has_its_own_box():
    made = outlines(*band([(0, 1, 0, 1), (4, 5, 4, 5), (8, 9, 4, 5)], [1]))
    assert len(made) == 2
    assert [area(each) for each in made] == [5.0, 1.0]


def test_exact_points_have_no_band():
    assert band([(1, 1, 2, 2)], []) == ([], [])
