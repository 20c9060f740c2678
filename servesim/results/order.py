"""Exact order statistics of a sample given as runs, in bounded memory.

Numbers that are not negative sort as their bit patterns do, read as whole numbers (IEEE 754). So each
wanted rank is held in a bracket of bit patterns; a histogram over equal bins of patterns, which are bins
of nearly equal ratio whatever the scale, narrows every bracket 65,536-fold in one pass over the runs, until
the few values left in it can be sorted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from servesim.results.runs import Floats, Integers, Runs, Source, spread
from servesim.results.totals import Totals

#: Bins of one histogram.
BINS = 1 << 16
#: Places that are sorted at once rather than narrowed down further.
FEW = 1 << 16
#: Pairs of a run and a bin, or places, that are looked at at once.
AT_ONCE = 1 << 19


class Bracket(NamedTuple):
    """The bit patterns in [low, high): ``below`` values lie before them, and ``places`` of runs in them."""

    low: int
    high: int
    below: int
    places: int

    @property
    def settled(self) -> bool:
        """Whether what it holds can be sorted, or is one value repeated."""
        return self.places <= FEW or self.high - self.low == 1

    @property
    def width(self) -> int:
        """Patterns per bin of its histogram."""
        return -(-(self.high - self.low) // BINS)

    def part(self, runs: Runs, lowest: Floats, highest: Floats) -> Runs:
        """Return what lies in it of runs with these ends."""
        low, high = _values(np.array([self.low, self.high]))
        return runs.take((lowest < high) & (highest >= low)).between(low, high)

    def bins(self, values: Floats) -> Integers:
        """Return the bin of each value in it."""
        return (_patterns(values) - self.low) // self.width

    def edges(self, bins: Integers) -> Floats:
        """Return the smallest value of each bin."""
        return _values(self.low + bins * self.width)


class Histogram:
    """How many values, and how many places of runs, each bin of a bracket holds."""

    def __init__(self, bracket: Bracket) -> None:
        self.bracket = bracket
        self.values = np.zeros(BINS)
        self.places = np.zeros(BINS)

    def add(self, runs: Runs) -> None:
        """Count runs that lie in the bracket.

        One in a single bin is counted whole; one with few places, place by place; one with many, by the
        places below each edge that it crosses.
        """
        first, last = self.bracket.bins(runs.lowest), self.bracket.bins(runs.highest)
        crossed = last - first
        inside, few = crossed == 0, runs.places <= crossed
        self._count(first[inside], runs.places[inside], runs.weight[inside])
        sparse = runs.take(few)
        for piece in _pieces(sparse.places):
            values, weights = sparse.take(piece).expanded()
            self._count(self.bracket.bins(values), np.ones_like(weights), weights)
        dense, first, crossed = runs.take(~inside & ~few), first[~inside & ~few], crossed[~inside & ~few]
        for piece in _pieces(crossed):
            self._count(*self._by_edges(dense.take(piece), first[piece], crossed[piece]))

    def _by_edges(
        self, runs: Runs, first: Integers, crossed: Integers
    ) -> tuple[Integers, Integers, Integers]:
        """Return (bin, places, weight) of each bin of each run, from its first bin to its last."""
        owner, offset = spread(crossed + 1)
        bins = first[owner] + offset
        begins = runs.take(owner).places_below(self.bracket.edges(bins))
        ends = np.append(begins[1:], 0)
        ends[np.cumsum(crossed + 1) - 1] = runs.stop
        return bins, ends - begins, runs.weight[owner]

    def _count(self, bins: Integers, places: Integers, weight: Integers) -> None:
        self.places += np.bincount(bins, places, BINS)
        self.values += np.bincount(bins, places * weight, BINS)

    def narrowed(self, rank: int) -> Bracket:
        """Return the bin that holds the value of this rank, as a bracket."""
        upto = self.bracket.below + np.cumsum(self.values)
        chosen = int(np.searchsorted(upto, rank, side="right"))
        low = self.bracket.low + chosen * self.bracket.width
        below = int(upto[chosen] - self.values[chosen])
        high = min(low + self.bracket.width, self.bracket.high)
        return Bracket(low, high, below, int(self.places[chosen]))


def order_statistics(source: Source, whole: Totals, ranks: Iterable[int]) -> dict[int, float]:
    """Return the values at these ranks (0: the smallest) of a sample with these totals."""
    low, high = _patterns(np.array([whole.lowest, whole.highest])).tolist()
    held = dict.fromkeys(ranks, Bracket(low, high + 1, 0, whole.places))
    while wide := {bracket for bracket in held.values() if not bracket.settled}:
        histograms = {bracket: Histogram(bracket) for bracket in wide}
        for runs in source():
            ends = runs.lowest, runs.highest
            for bracket, histogram in histograms.items():
                histogram.add(bracket.part(runs, *ends))
        held |= {rank: histograms[b].narrowed(rank) for rank, b in held.items() if b in wide}
    return _sorted_out(source, held)


def _sorted_out(source: Source, held: dict[int, Bracket]) -> dict[int, float]:
    """Return the values of ranks whose brackets hold few places, by sorting these."""
    small = {bracket for bracket in held.values() if bracket.places <= FEW}
    parts: dict[Bracket, list[tuple[Floats, Integers]]] = {bracket: [] for bracket in small}
    for runs in source():
        ends = runs.lowest, runs.highest
        for bracket, found in parts.items():
            found.append(bracket.part(runs, *ends).expanded())
    tables = {bracket: _cumulated(bracket, found) for bracket, found in parts.items()}
    single = {r: float(_values(np.array([b.low]))[0]) for r, b in held.items() if b not in small}
    return single | {rank: _at(rank, *tables[b]) for rank, b in held.items() if b in small}


def _cumulated(bracket: Bracket, found: list[tuple[Floats, Integers]]) -> tuple[Floats, Integers]:
    """Return the values in order, and how many values of the whole sample lie up to each."""
    values, weights = (np.concatenate(columns) for columns in zip(*found, strict=True))
    order = np.argsort(values)
    return values[order], bracket.below + np.cumsum(weights[order])


def _at(rank: int, values: Floats, upto: Integers) -> float:
    return float(values[np.searchsorted(upto, rank, side="right")])


def _pieces(sizes: Integers) -> Iterator[slice]:
    """Yield slices of about :data:`AT_ONCE` in sum."""
    cuts = np.flatnonzero(np.diff(np.cumsum(sizes) // AT_ONCE)) + 1
    for begin, end in zip([0, *cuts], [*cuts, len(sizes)], strict=True):
        yield slice(begin, end)


def _patterns(values: Floats) -> Integers:
    return np.ascontiguousarray(values).view(np.int64)


def _values(patterns: Integers) -> Floats:
    return patterns.view(np.float64)
