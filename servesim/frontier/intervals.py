"""Confidence intervals over independent replications: runs of one configuration with different seeds."""

from __future__ import annotations

from math import nan, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit  # scipy.stats has it, too, and takes a second to import


class Interval(NamedTuple):
    """A mean over ``n`` replications, and where the true mean lies with the confidence asked for.

    ``low`` and ``high`` are NaN where one replication says nothing of the spread; all is NaN where n is 0.
    """

    mean: float
    low: float
    high: float
    n: int


def replicate_interval(values: ArrayLike, confidence: float = 0.95) -> Interval:
    """Return Student's interval of the mean of independent replications, m +- t s / sqrt(n).

    s is the sample's standard deviation (n - 1), t the quantile of Student's distribution with n - 1
    degrees of freedom at (1 + confidence) / 2 (Law, Simulation Modeling and Analysis, 2015, section 4.5).
    NaN values are replications without a figure, and left out. Equal values have an interval without a width,
    whatever a sum of them is rounded to.
    """
    sample = _known(values)
    if not len(sample):
        return Interval(nan, nan, nan, 0)
    same = bool((sample == sample[0]).all())
    mean = float(sample[0] if same else np.mean(sample))
    if len(sample) == 1:
        return Interval(mean, nan, nan, 1)
    if same:
        return Interval(mean, mean, mean, len(sample))
    quantile = float(stdtrit(len(sample) - 1, (1 + confidence) / 2))
    half = quantile * float(np.std(sample, ddof=1)) / sqrt(len(sample))
    return Interval(mean, mean - half, mean + half, len(sample))


def paired_difference(first: ArrayLike, second: ArrayLike, confidence: float = 0.95) -> Interval:
    """Return the interval of the mean of ``first - second``, paired by seed.

    Under common random numbers both are measured on the same traffic, so that most of its luck cancels out
    of each difference (Law, section 11.2).

    Raises:
        ValueError: they are not equally many.
    """
    one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if one.shape != other.shape:
        raise ValueError(f"needs as many values on both sides, not {one.shape} and {other.shape}")
    return replicate_interval(one - other, confidence)


def _known(values: ArrayLike) -> NDArray[np.float64]:
    sample = np.asarray(values, dtype=np.float64).ravel()
    return sample[~np.isnan(sample)]
