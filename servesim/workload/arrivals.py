"""Arrival processes: when requests are due to be sent.

An open-loop process is a unit-rate process of gaps with mean 1, mapped to seconds. Request i therefore has
the same unit gap at every rate, and a curve of rates is followed exactly, by rescaling time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import repeat
from typing import ClassVar, Literal, Protocol

import numpy as np

from servesim.check import MOST_FACTOR, MOST_S, quantity
from servesim.workload.batch import BATCH_ROWS, FloatArray

#: A request in 32 years, or that many in a second.
LEAST_RPS, MOST_RPS = 1e-9, 1e9


class OpenLoop(Protocol):
    """An arrival process that does not look at the answers."""

    def unit_gaps(self, rng: np.random.Generator, count: int) -> FloatArray:
        """Draw the next ``count`` gaps of the unit-rate process (mean 1, no unit)."""

    def times(self, unit_times: FloatArray) -> FloatArray:
        """Map the cumulated unit gaps to moments of sending (seconds), in the same order."""


def moments(process: OpenLoop, rng: np.random.Generator, rows: int) -> Iterator[FloatArray]:
    """Yield the moments of an open-loop process (seconds), ``rows`` at a time, without end."""
    unit_time = 0.0
    while True:
        # Summing from the time reached, gap by gap, gives the same bits in batches of any size.
        gaps = process.unit_gaps(rng, rows)
        gaps[0] += unit_time
        unit_times = np.cumsum(gaps)
        unit_time = unit_times[-1]
        yield process.times(unit_times)


@dataclass(frozen=True)
class Renewal:
    """Independent gaps with mean ``1 / rate_rps``."""

    rate_rps: float = quantity("requests/s", at_least=LEAST_RPS, at_most=MOST_RPS)

    @property
    def gap_mean_s(self) -> float:
        """Return the mean gap (seconds)."""
        return 1.0 / self.rate_rps

    def times(self, unit_times: FloatArray) -> FloatArray:
        """Map cumulated unit gaps to seconds."""
        return unit_times / self.rate_rps


@dataclass(frozen=True)
class Poisson(Renewal):
    """Exponential gaps: users who know nothing of each other."""

    gap_scv: ClassVar[float] = 1.0
    hints: ClassVar[Mapping[str, str]] = {"burstiness": "choose workload/arrivals=gamma"}

    def unit_gaps(self, rng: np.random.Generator, count: int) -> FloatArray:
        """Draw exponential gaps with mean 1."""
        return rng.standard_exponential(count)


@dataclass(frozen=True)
class Gamma(Renewal):
    """Gamma gaps of shape ``burstiness``: 1 is Poisson, less is burstier, more is steadier.

    The parameter is that of ``vllm bench serve --burstiness`` (vLLM, vllm/benchmarks/serve.py): shape k
    and scale 1/(rate * k), so the mean gap is 1/rate and its squared coefficient of variation 1/k. Gaps
    are not rescaled afterwards to hit N/rate in total, which would make them dependent.
    """

    burstiness: float = quantity("gamma shape", at_least=1e-3, at_most=MOST_FACTOR)

    @property
    def gap_scv(self) -> float:
        """Return the squared coefficient of variation of the gaps."""
        return 1.0 / self.burstiness

    def unit_gaps(self, rng: np.random.Generator, count: int) -> FloatArray:
        """Draw gamma gaps with mean 1."""
        return rng.standard_gamma(self.burstiness, count) / self.burstiness


@dataclass(frozen=True)
class Constant(Renewal):
    """Equal gaps: a metronome."""

    gap_scv: ClassVar[float] = 0.0
    hints: ClassVar[Mapping[str, str]] = {"burstiness": "choose workload/arrivals=gamma"}

    def unit_gaps(self, rng: np.random.Generator, count: int) -> FloatArray:
        """Return gaps of 1; nothing is drawn."""
        return np.ones(count)


@dataclass(frozen=True)
class Burst:
    """Everything at the start of the run: ``vllm bench serve --request-rate inf``."""

    hints: ClassVar[Mapping[str, str]] = {
        "rate_rps": "a burst has no rate: all requests are due at once; choose workload/arrivals=poisson",
        "concurrency": "set client.max_concurrency, or choose workload/arrivals=closed_loop",
    }

    def unit_gaps(self, rng: np.random.Generator, count: int) -> FloatArray:
        """Return gaps of 0; nothing is drawn."""
        return np.zeros(count)

    def times(self, unit_times: FloatArray) -> FloatArray:
        """Return 0 for every request (seconds)."""
        return np.zeros_like(unit_times)


@dataclass(frozen=True)
class ClosedLoop:
    """``concurrency`` users, each of whom sends the next request when the last answer has ended.

    User k of n begins at k/n of ``ramp_up_s``; all begin at once where that is 0. After each answer a user
    thinks for ``think_time_s``, always as long or exponentially distributed about that mean.
    """

    concurrency: int = quantity("users", at_least=1, at_most=1_000_000)
    ramp_up_s: float = quantity("s", at_least=0, at_most=MOST_S, default=0.0)
    think_time_s: float = quantity("s", at_least=0, at_most=MOST_S, default=0.0)
    think_time: Literal["constant", "exponential"] = quantity(default="constant")

    hints: ClassVar[Mapping[str, str]] = {
        "rate_rps": "the answers set the rate of a closed loop; set workload.arrivals.concurrency, "
        "or choose workload/arrivals=poisson"
    }

    def start_s(self, user: int) -> float:
        """Return when a user begins (seconds), the first one being number 0."""
        return self.ramp_up_s * user / self.concurrency

    def thoughts_s(self, rng: np.random.Generator) -> Iterator[float]:
        """Yield the seconds that a user thinks over the answer to each request, without end."""
        if self.think_time == "constant" or not self.think_time_s:
            yield from repeat(self.think_time_s)
        while True:
            yield from (self.think_time_s * rng.standard_exponential(BATCH_ROWS)).tolist()
