"""Bisection: the fewest replicas that meet an objective, and the highest rate that meets it.

Both take for granted that more replicas never hurt and more traffic never helps. Simulations obey that but
for the noise of chance near the edge; so what is returned was tried itself, and so was its neighbour that
fails.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt


def fewest(meets: Callable[[int], bool], low: int, high: int) -> int | None:
    """Return a number from ``low`` to ``high`` that meets, while the one before it (if in range) does not.

    Numbers are tried from ``low`` upwards in steps that double, from an eighth of ``low`` on, then halved.
    None where even ``high`` does not meet, or the range is empty.
    """
    if low > high:
        return None
    fails, step, number = low - 1, max(low // 8, 1), low
    while not meets(number):
        if number == high:
            return None
        fails, number, step = number, min(number + step, high), 2 * step
    while number - fails > 1:
        middle = (fails + number) // 2
        if meets(middle):
            number = middle
        else:
            fails = middle
    return number


def highest(meets: Callable[[float], bool], low: float, high: float, tolerance: float) -> tuple[float, float]:
    """Return a factor that meets and a larger one that does not, no further apart than ``tolerance`` of it.

    ``low`` is known to meet. ``high`` is only a first guess at a factor that fails: while it meets, it is
    doubled.
    """
    high = max(high, low * (1 + tolerance))
    while meets(high):
        low, high = high, 2 * high
    while high > low * (1 + tolerance):
        middle = sqrt(low * high)
        if meets(middle):
            low = middle
        else:
            high = middle
    return low, high
