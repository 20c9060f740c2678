"""Runs of equidistant values, each repeated: how the leaps hold the gaps between tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Runs(NamedTuple):
    """Some runs: run i holds the values first + j x increment for start <= j < stop, ``weight`` times each.

    All are arrays of one length. Values and increments are not negative, weights are positive.
    """

    first: Floats
    increment: Floats
    start: Integers
    stop: Integers
    weight: Integers

    @property
    def places(self) -> Integers:
        """How many values each run has, repeats by weight not counted."""
        places: Integers = self.stop - self.start
        return places

    @property
    def lowest(self) -> Floats:
        """The first and smallest value of each run."""
        return self.value(self.start)

    @property
    def highest(self) -> Floats:
        """The last and largest value of each run."""
        return self.value(self.stop - 1)

    def value(self, place: Integers) -> Floats:
        """Return the value at one place of each run."""
        values: Floats = self.first + place * self.increment
        return values

    def take(self, chosen: NDArray[Any] | slice) -> Runs:
        """Return the chosen runs (a mask, indices or a slice), repeated as often as they are named."""
        return Runs(
            self.first[chosen],
            self.increment[chosen],
            self.start[chosen],
            self.stop[chosen],
            self.weight[chosen],
        )

    def places_below(self, limit: float | Floats) -> Integers:
        """Return the first place of each run whose value is not below ``limit``; ``stop`` where all are.

        The division only guesses: rounding moves it, so the very values decide.
        """
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            guess = np.ceil((limit - self.first) / self.increment)
        place: Integers = np.clip(np.nan_to_num(guess), self.start, self.stop).astype(np.int64)
        while True:
            back = (place > self.start) & (self.value(place - 1) >= limit)
            ahead = (place < self.stop) & (self.value(place) < limit)
            if not (back.any() or ahead.any()):
                return place
            place += ahead.astype(np.int64) - back

    def between(self, low: float, high: float) -> Runs:
        """Return the parts of the runs whose values lie in [low, high)."""
        clipped = self._replace(start=self.places_below(low), stop=self.places_below(high))
        return clipped.take(clipped.places > 0)

    def expanded(self) -> tuple[Floats, Integers]:
        """Return the value and the weight of every place of every run."""
        run, offset = spread(self.places)
        values = self.first[run] + (self.start[run] + offset) * self.increment[run]
        return values, self.weight[run]


#: Anything that yields the runs of a sample, in parts of bounded size, as often as it is asked to.
Source = Callable[[], Iterator[Runs]]


def spread(sizes: Integers) -> tuple[Integers, Integers]:
    """Return for ``sizes[i]`` items of each i their i, and their number within it: (0 0 1 1 1, 0 1 0 1 2)."""
    owner = np.repeat(np.arange(len(sizes)), sizes)
    begins = np.cumsum(sizes) - sizes
    return owner, np.arange(len(owner)) - begins[owner]
