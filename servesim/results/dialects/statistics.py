"""The statistics that tools tell of a sample, each tool its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import nan, sqrt
from typing import NamedTuple

import numpy as np

from servesim.results.runs import Floats, Source
from servesim.results.statistics import run_percentiles
from servesim.results.totals import totals

Statistics = dict[str, float | None]


class Weighted(NamedTuple):
    """A sample whose values count as often as their weights say."""

    values: Floats
    weights: Floats


#: One value per request, or the pooled gaps between tokens.
Distribution = Floats | Source

AIPERF_PERCENTS = (1, 5, 10, 25, 50, 75, 90, 95, 99)
GUIDELLM_SHARES = {
    "p001": 0.001,
    "p01": 0.01,
    "p05": 0.05,
    "p10": 0.1,
    "p25": 0.25,
    "p50": 0.5,
    "p75": 0.75,
    "p90": 0.9,
    "p95": 0.95,
    "p99": 0.99,
    "p999": 0.999,
}
_GUIDELLM_MOMENTS = ("mean", "median", "mode", "variance", "std_dev", "min", "max", "count", "total_sum")


def bench(percents: Sequence[int]) -> Callable[[Distribution], Statistics]:
    """Return the statistics of ``vllm bench serve``: mean, median, std (ddof 0), and these percentiles.

    Percentiles interpolate linearly (``numpy.percentile``); everything of an empty sample is 0.
    """
    names = ("mean", "median", "std", *(f"p{percent}" for percent in percents))

    def statistics(sample: Distribution) -> Statistics:
        count, mean, std, (median, *others) = _linear(sample, [50, *percents])
        return dict(zip(names, (mean, median, std, *others) if count else [0.0] * len(names), strict=True))

    return statistics


def aiperf(sample: Distribution) -> Statistics:
    """Return AIPerf's statistics of what is not NaN: linear percentiles, std with ddof 0.

    They are null where there are no values.
    """
    known = sample if callable(sample) else sample[~np.isnan(sample)]
    count, mean, std, (least, *values, most) = _linear(known, [0, *AIPERF_PERCENTS, 100])
    names = (f"p{percent}" for percent in AIPERF_PERCENTS)
    found: Statistics = {"avg": mean, "min": least, "max": most, **dict(zip(names, values, strict=True))}
    told: Statistics = {**found, "std": std} if count else dict.fromkeys([*found, "std"])
    return {**told, "count": count, "sum": mean * count if count else 0.0}


def guidellm(sample: Weighted) -> Statistics:
    """Return GuideLLM's statistics; everything of a sample without weight is 0.

    A percentile is the least value up to which the weights make that share, without interpolation.
    """
    values, weights = sample
    counted = weights > 0
    if not counted.any():
        return dict.fromkeys([*_GUIDELLM_MOMENTS, *GUIDELLM_SHARES], 0.0)
    distinct, place = np.unique(values[counted], return_inverse=True)
    share = np.bincount(place, weights[counted]) / weights.sum()
    upto = np.searchsorted(np.cumsum(share), list(GUIDELLM_SHARES.values()))
    percentiles = dict(
        zip(GUIDELLM_SHARES, distinct[np.minimum(upto, len(distinct) - 1)].tolist(), strict=True)
    )
    mean = float((distinct * share).sum())
    variance = float(((distinct - mean) ** 2 * share).sum())
    count = round(float(weights.sum()))
    moments = (
        mean,
        percentiles["p50"],
        float(distinct[np.argmax(share)]),
        variance,
        sqrt(variance),
        float(distinct[0]),
        float(distinct[-1]),
        count,
        mean * count,
    )
    return {**dict(zip(_GUIDELLM_MOMENTS, moments, strict=True)), **percentiles}


def _linear(sample: Distribution, percents: Sequence[float]) -> tuple[int, float, float, list[float]]:
    """Return size, mean, std (ddof 0) and percentiles with linear interpolation; NaN of an empty sample."""
    nothing = (0, nan, nan, [nan] * len(percents))
    if callable(sample):
        whole = totals(sample)
        if not whole.values:
            return nothing
        return whole.values, whole.mean, whole.std, run_percentiles(sample, whole, percents)
    if not len(sample):
        return nothing
    return (
        len(sample),
        float(np.mean(sample)),
        float(np.std(sample)),
        np.percentile(sample, percents).tolist(),
    )
