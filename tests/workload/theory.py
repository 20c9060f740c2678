"""Comparing samples with theory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: Standard errors that a correct sample passes once in 150,000 tests (two-sided normal).
SIGMAS = 4.5

SAMPLES = 10**5


def assert_mean(sample: NDArray[np.float64], mean: float, variance: float) -> None:
    """Assert that the mean of independent values is ``mean``, with confidence 1 - 7e-6."""
    error = np.sqrt(variance / len(sample))
    assert abs(sample.mean() - mean) <= SIGMAS * error


def assert_variance(sample: NDArray[np.float64], variance: float) -> None:
    """Assert that the variance of independent values is ``variance``, with confidence 1 - 7e-6.

    The standard error of a sample variance is sqrt((m4 - s^4)/n), with the sample's fourth central moment.
    """
    fourth = ((sample - sample.mean()) ** 4).mean()
    error = np.sqrt(max(fourth - variance**2, 0) / len(sample))
    assert abs(sample.var() - variance) <= SIGMAS * error


def rank_correlation(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """Return Spearman's correlation; ties share the middle of their ranks."""
    return float(np.corrcoef(_ranks(first), _ranks(second))[0, 1])


def _ranks(values: NDArray[np.int64]) -> NDArray[np.float64]:
    ordered = np.sort(values)
    return (np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")) / 2.0
