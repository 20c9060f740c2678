"""The interesting loads of one configuration: coarse steps, then where it fails and where it bends."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import hypot, log, sqrt
from typing import NamedTuple

from servesim.frontier.objective import bracket

#: The ratio of neighbours in the coarse grid.
COARSE = 4.0
#: Neighbours nearer to each other than by this ratio are not split.
FINEST = 1.1
#: Throughput that grows by less than this ratio over a coarse step is at its limit.
_GAIN = 1.05
#: Requests under way on average below which a request is nearly alone: a lighter load is no quicker.
ALONE = 0.5
#: Splits that one round makes, so that several workers have something to do.
_SPLITS = 2


class Measured(NamedTuple):
    """What is known at one load.

    Attributes:
        saturated: whether requests piled up (in a closed loop they cannot).
        throughput: completed per second, in any unit.
        tail_s: the latency of the slow requests; None where none completed.
        good: the share of requests that met the SLO; None without one.
        meets: whether that is enough, of a run that is settled and not saturated; None without an SLO.
        under_way: requests in the system on average; None where nobody knows.

    """

    saturated: bool
    throughput: float | None
    tail_s: float | None
    good: float | None
    meets: bool | None = None
    under_way: float | None = None


class LoadSearch:
    """Proposes loads round by round, and is told what was measured there.

    The first loads are ``start`` and its neighbours on a geometric grid, so that configurations which start
    at the same load are measured at the same loads. The grid is continued until it holds a load before
    saturation and one past it, and downwards until a load meets the SLO or a request is nearly alone. Then,
    round by round, two intervals are halved: the one between the highest load that meets the SLO and the
    lowest that misses it, and the one over which the curves bend most, whose ends are farthest apart in load,
    tail latency and goodput, each as a share of its range. Nothing beyond the first saturated load is looked
    at.

    The proposals depend on the measured values alone, never on the order or the time in which they came.
    """

    def __init__(self, start: float, points: int, whole: bool = False) -> None:
        """Begin a search.

        Args:
            start: the load to begin at, above 0.
            points: the most loads to try.
            whole: whether loads are whole numbers.

        """
        self._start, self._points, self._whole = start, points, whole
        self._measured: dict[float, Measured | None] = {}

    def tell(self, load: float, measured: Measured | None) -> None:
        """Take note of what was measured at a load; None where every run there failed."""
        self._measured[load] = measured

    def propose(self) -> list[float]:
        """Return the loads to measure next, in order; none when the search is over."""
        left = self._points - len(self._measured)
        if left <= 0 or (self._measured and not any(self._measured.values())):
            return []
        return sorted(list(self._coarse() or self._splits())[:left])

    def _coarse(self) -> list[float]:
        """Return what the grid lacks: a load before saturation, or one past it."""
        if not self._measured:
            return self._new(self._start, self._start / COARSE, self._start * COARSE)
        loads = sorted(self._measured)
        first = self._first_past()
        if first == loads[0] or self._misses(loads[0]):
            return self._new(loads[0] / COARSE)
        return self._new(loads[-1] * COARSE) if first is None else []

    def _misses(self, load: float) -> bool:
        """Tell whether the SLO is missed at a load at which a request is not yet alone."""
        here = self._measured[load]
        if here is None or here.meets is not False:
            return False
        return here.under_way is None or here.under_way > ALONE

    def _new(self, *loads: float) -> list[float]:
        wanted = dict.fromkeys(self._rounded(load) for load in loads)
        return [load for load in wanted if load > 0 and load not in self._measured]

    def _rounded(self, load: float) -> float:
        """Return a load that is easily read: a whole number, or three significant digits."""
        return max(1, round(load)) if self._whole else float(f"{load:.3g}")

    def _first_past(self) -> float | None:
        """Return the lowest load that is past saturation."""
        return next((load for load in sorted(self._measured) if self._is_past(load)), None)

    def _is_past(self, load: float) -> bool:
        """Tell whether more arrives than is served, or nothing is gained any more, or every run failed."""
        here = self._measured[load]
        if here is None or here.saturated or not here.throughput:
            return True
        below = [other for other in self._measured if other * COARSE <= load * FINEST]
        before = self._measured[max(below)] if below else None
        return bool(before and before.throughput and here.throughput < _GAIN * before.throughput)

    def _splits(self) -> Iterator[float]:
        """Yield the middle of the interval in which the SLO ceases to be met, and of those that bend most."""
        first = self._first_past()
        loads = [load for load in sorted(self._measured) if first is None or load <= first]
        places = self._places(loads)
        intervals = [
            (-hypot(*(b - a for a, b in zip(places[low], places[high], strict=True))), low, high)
            for low, high in pairwise(loads)
            if high > low * FINEST
        ]
        ends = [*self._edge(), *((low, high) for _, low, high in sorted(intervals))]
        middles = (load for low, high in ends for load in self._new(sqrt(low * high)))
        yield from list(dict.fromkeys(middles))[:_SPLITS]

    def _edge(self) -> list[tuple[float, float]]:
        """Return the interval in which the SLO ceases to be met, unless it is short or not known."""
        judged = {load: each for load, each in self._measured.items() if each and each.meets is not None}
        meets, misses, _ = bracket(list(judged), [bool(each.meets) for each in judged.values()])
        if meets is None or misses is None or misses <= meets * FINEST:
            return []
        return [(meets, misses)]

    def _places(self, loads: list[float]) -> dict[float, tuple[float, ...]]:
        """Return where each load lies in load, tail latency and goodput, each as a share of its range."""
        known = [self._measured[load] for load in loads]
        columns: list[list[float | None]] = [
            [log(load) for load in loads],
            [log(each.tail_s) if each and each.tail_s else None for each in known],
            [each.good if each else None for each in known],
        ]
        return dict(zip(loads, zip(*map(_shares, columns), strict=True), strict=True))


def _shares(column: list[float | None]) -> list[float]:
    """Return values as shares of their range, from 0 to 1; what is not known lies at 0."""
    known = [value for value in column if value is not None]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)
    return [(value - low) / (high - low) if value is not None and high > low else 0.0 for value in column]
