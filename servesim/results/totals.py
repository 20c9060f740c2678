"""Sums over a sample given as runs: its size, its ends, its mean and spread."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt

import numpy as np

from servesim.results.runs import Runs, Source


@dataclass
class Totals:
    """What one pass over the runs of a sample adds up.

    Sums are taken about ``origin``, a value of the sample: of n values none can be further than
    sqrt(n) standard deviations from the mean, so the variance keeps its digits (to about n ulp).
    """

    origin: float = 0.0
    values: int = 0
    places: int = 0
    lowest: float = inf
    highest: float = 0.0
    sum: float = 0.0
    squares: float = 0.0

    def add(self, runs: Runs) -> None:
        """Add runs, at least one.

        n equidistant values with middle m and distance d have the sum n m, and the sum of squares
        n m^2 + d^2 n (n^2 - 1) / 12.
        """
        lowest, highest, places = runs.lowest, runs.highest, runs.places
        if not self.values:
            self.origin = float(lowest[0])
        count = places.astype(np.float64)
        middle = (lowest - self.origin) / 2 + (highest - self.origin) / 2
        spread = runs.increment**2 * ((count * count - 1) / 12)
        repeats = runs.weight * count
        self.values += int(repeats.sum())
        self.places += int(places.sum())
        self.lowest = min(self.lowest, float(lowest.min()))
        self.highest = max(self.highest, float(highest.max()))
        self.sum += float((repeats * middle).sum())
        self.squares += float((repeats * (middle * middle + spread)).sum())

    @property
    def mean(self) -> float:
        """The mean of the values."""
        return self.origin + self.sum / self.values

    @property
    def std(self) -> float:
        """The standard deviation of the values, as of a whole population (ddof 0)."""
        off = self.sum / self.values
        return sqrt(max(self.squares / self.values - off * off, 0.0))


def totals(source: Source) -> Totals:
    """Return the totals of all runs of a sample."""
    found = Totals()
    for runs in source():
        found.add(runs)
    return found
