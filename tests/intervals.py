"""Confidence intervals of means."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np
from scipy.stats import t


class Interval(NamedTuple):
    """A stretch that holds the true mean with a stated confidence."""

    low: float
    high: float

    def __contains__(self, value: object) -> bool:
        return isinstance(value, float) and self.low <= value <= self.high


def mean_interval(sample: Sequence[float], confidence: float) -> Interval:
    """Return Student's interval of the mean of independent values, m +- t s / sqrt(n)."""
    half = (
        float(t.ppf((1 + confidence) / 2, len(sample) - 1))
        * float(np.std(sample, ddof=1))
        / sqrt(len(sample))
    )
    mean = float(np.mean(sample))
    return Interval(mean - half, mean + half)
