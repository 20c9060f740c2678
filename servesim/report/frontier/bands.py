"""Bands around a curve whose points are uncertain in both figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Point = tuple[float, float]
Box = tuple[float, float, float, float]


def band(boxes: Sequence[Box], joined: Iterable[int]) -> tuple[list[float | None], list[float | None]]:
    """Return x and y of the outlines that make a band, with None between them.

    Where a point is uncertain in x and in y, it lies in a box (x low, x high, y low, y high). Between two
    neighbours the band is the convex hull of their boxes, which is what a box sweeps that moves from the one
    to the other in a straight line. All outlines turn the same way, so that they fill as one. A point that
    no line reaches has its own box, which is a line where one figure is exact.

    Args:
        boxes: the box of each point, in the order of the curve.
        joined: the points that a line joins to the next one.

    """
    hulls = [_hull([*_corners(boxes[index]), *_corners(boxes[index + 1])]) for index in sorted(joined)]
    within = {index for each in joined for index in (each, each + 1)}
    alone = [_hull(_corners(box)) for index, box in enumerate(boxes) if index not in within]
    x: list[float | None] = []
    y: list[float | None] = []
    for hull in [*(each for each in hulls if len(each) > 2), *(each for each in alone if len(each) > 1)]:
        x += [*(each[0] for each in hull), hull[0][0], None]
        y += [*(each[1] for each in hull), hull[0][1], None]
    return x[:-1], y[:-1]


def _corners(box: Box) -> list[Point]:
    x_low, x_high, y_low, y_high = box
    return [(x_low, y_low), (x_high, y_low), (x_high, y_high), (x_low, y_high)]


def _hull(corners: Sequence[Point]) -> list[Point]:
    """Return the convex hull, anticlockwise (Andrew, Information Processing Letters 9(5), 1979)."""
    ordered = sorted(set(corners))
    return [*_chain(ordered)[:-1], *_chain(ordered[::-1])[:-1]] or ordered


def _chain(ordered: Sequence[Point]) -> list[Point]:
    chain: list[Point] = []
    for point in ordered:
        while len(chain) > 1 and _turn(chain[-2], chain[-1], point) <= 0:
            chain.pop()
        chain.append(point)
    return chain


def _turn(a: Point, b: Point, c: Point) -> float:
    """Return twice the area of a, b, c: positive when they turn left."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
