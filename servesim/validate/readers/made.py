"""What is made up where a file does not tell each request: times of sending, and lengths."""

from __future__ import annotations

from math import isinf

import numpy as np

from servesim.validate.measured import Floats, Integers
from servesim.validate.readers.problems import refuse

_SEED = 0


def arrivals(count: int, rate_rps: float | None, burstiness: float, source: str) -> Floats:
    """Return times of sending (s) at a rate, as ``vllm bench serve`` draws them: gamma gaps, then rescaled.

    The gaps have the shape ``burstiness`` and are rescaled so that all requests take count / rate; inf is
    all at once. The draws are not the benchmark's own.

    Raises:
        ConfigError: there is no rate.
    """
    if rate_rps is None or not rate_rps > 0:
        refuse(source, "has neither times of sending nor a request rate: it cannot be replayed")
    if isinf(rate_rps):
        return np.zeros(count)
    gaps = np.random.default_rng(_SEED).gamma(burstiness, size=count)
    gaps *= count / rate_rps / gaps.sum()
    times: Floats = np.cumsum(gaps)
    return times


def equal_lengths(count: int, total: float) -> Integers:
    """Return lengths that differ by one token at the most and add up to ``total``, at least 1 each."""
    ends = np.floor(np.linspace(0.0, total, count + 1) + 0.5).astype(np.int64)
    lengths: Integers = np.maximum(np.diff(ends), 1)
    return lengths
