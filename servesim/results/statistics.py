"""What is said of a sample: its size, mean, spread and percentiles."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

import numpy as np
from numpy.typing import NDArray

from servesim.results.order import order_statistics
from servesim.results.runs import Source
from servesim.results.totals import Totals, totals

Floats = NDArray[np.float64]

PERCENTILES = (1, 5, 25, 50, 75, 90, 95, 99)


def describe(sample: Floats) -> dict[str, float]:
    """Return n, mean, std (ddof 0), min, percentiles and max of a sample; NaN beside n = 0 when it is empty.

    The same statistics as ``vllm bench serve``: ``numpy.std`` and ``numpy.percentile`` with their defaults
    (linear interpolation), except that an empty sample has no mean rather than a mean of 0.
    """
    if not len(sample):
        return _named(0, nan, nan, [nan] * (len(PERCENTILES) + 2))
    values = np.percentile(sample, [0, *PERCENTILES, 100])
    return _named(len(sample), float(np.mean(sample)), float(np.std(sample)), values.tolist())


def describe_runs(source: Source) -> dict[str, float]:
    """Return what :func:`describe` says of the sample that runs stand for, without expanding it."""
    whole = totals(source)
    if not whole.values:
        return describe(np.empty(0))
    return _named(whole.values, whole.mean, whole.std, run_percentiles(source, whole, [0, *PERCENTILES, 100]))


def run_percentiles(source: Source, whole: Totals, percents: Sequence[float]) -> list[float]:
    """Return the percentiles of a sample given as runs, interpolated as ``numpy.percentile`` does.

    The p-th percentile of n values lies at rank h = (n - 1) p / 100, between the order statistics a and b
    around it: a + (b - a) (h - floor h) (Hyndman and Fan, "Sample quantiles", 1996, definition 7).
    """
    last = whole.values - 1
    places = [last * (percent / 100) for percent in percents]
    around = [(int(place), min(int(place) + 1, last)) for place in places]
    found = order_statistics(source, whole, {rank for pair in around for rank in pair})
    return [_between(found[a], found[b], h - a) for h, (a, b) in zip(places, around, strict=True)]


def _between(a: float, b: float, share: float) -> float:
    """Interpolate from the nearer end, as numpy does, so that the results are equal to the last bit."""
    return b - (b - a) * (1 - share) if share >= 0.5 else a + (b - a) * share


def _named(count: int, mean: float, std: float, values: list[float]) -> dict[str, float]:
    names = ["min", *(f"p{percent}" for percent in PERCENTILES), "max"]
    return {"n": count, "mean": mean, "std": std, **dict(zip(names, values, strict=True))}
