"""Arrivals as ``vllm bench serve`` draws them for a given number of requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count, islice
from typing import ClassVar, Literal

import numpy as np

from servesim.check import MOST_FACTOR, Problem, quantity
from servesim.workload.arrivals import LEAST_RPS, MOST_RPS, Gamma
from servesim.workload.batch import BATCH_ROWS, FloatArray


@dataclass(frozen=True)
class VllmBench:
    """Gamma gaps, rescaled so that the last of N requests is due at N / ``rate_rps``; or a ramp of the rate.

    Source: vLLM, vllm/benchmarks/serve.py, ``get_request`` and ``_get_current_request_rate``. A gap has shape
    ``burstiness`` and scale 1/(rate * burstiness), and the first one comes before the first request. While
    ramping, the rate before request i follows p = i / (N - 1), linearly or exponentially from
    ``ramp_up_start_rps`` to ``ramp_up_end_rps``, and nothing is rescaled.
    """

    rate_rps: float | None = quantity("requests/s", at_least=LEAST_RPS, at_most=MOST_RPS, default=None)
    burstiness: float = quantity("gamma shape", at_least=1e-3, at_most=MOST_FACTOR, default=1.0)
    ramp_up_strategy: Literal["linear", "exponential"] | None = quantity(default=None)
    ramp_up_start_rps: float | None = quantity(
        "requests/s", at_least=LEAST_RPS, at_most=MOST_RPS, default=None
    )
    ramp_up_end_rps: float | None = quantity("requests/s", at_least=LEAST_RPS, at_most=MOST_RPS, default=None)

    hints: ClassVar[Mapping[str, str]] = {
        "request_rate": "set workload.arrivals.rate_rps; for inf choose workload/arrivals=burst",
        "max_concurrency": "set client.max_concurrency",
        "num_prompts": "set workload.requests",
    }

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong between fields: either a rate, or a ramp with both its ends."""
        ends = {"ramp_up_start_rps": self.ramp_up_start_rps, "ramp_up_end_rps": self.ramp_up_end_rps}
        if self.ramp_up_strategy is None:
            if self.rate_rps is None:
                yield Problem("rate_rps", None, "is missing where there is no ramp_up_strategy (requests/s)")
            for name, given in ends.items():
                if given is not None:
                    yield Problem(name, given, "needs a ramp_up_strategy, linear or exponential")
            return
        if self.rate_rps is not None:
            yield Problem(
                "rate_rps", self.rate_rps, "must be null with a ramp_up_strategy, which sets the rate"
            )
        for name, given in ends.items():
            if given is None:
                yield Problem(name, None, "is missing, ramp_up_strategy needs both ends (requests/s)")

    def moments(
        self, rng: Callable[[], np.random.Generator], requests: int, rows: int = BATCH_ROWS
    ) -> Iterator[FloatArray]:
        """Yield the moments of ``requests`` requests (seconds), ``rows`` at a time, and go on without end.

        ``rng`` gives a generator at the start of its stream. Without a ramp the gaps are drawn twice: the
        first time for their sum alone.
        """
        if self.rate_rps is None:
            yield from self._cumulated(rng(), requests, rows)
            return
        last, place = divmod(requests - 1, rows)
        total = next(islice(self._cumulated(rng(), requests, rows), last, None))[place]
        for moments in self._cumulated(rng(), requests, rows):
            yield moments / total * (requests / self.rate_rps)

    def longest_s(self, requests: int) -> float:
        """Return a bound on the time of the last request (seconds): exact but for chance and for a ramp."""
        rates = (self.rate_rps, self.ramp_up_start_rps, self.ramp_up_end_rps)
        return requests / min(rate for rate in rates if rate is not None)

    def rates(self, index: FloatArray, requests: int) -> FloatArray:
        """Return the rate before each request (requests/s); of one beyond the last, the last one's."""
        start, end = self.ramp_up_start_rps, self.ramp_up_end_rps
        if start is None or end is None:
            return np.full(len(index), 1.0)
        progress = np.minimum(index / max(requests - 1, 1), 1.0)
        if self.ramp_up_strategy == "linear":
            return start + (end - start) * progress
        return start * (end / start) ** progress

    def _cumulated(self, rng: np.random.Generator, requests: int, rows: int) -> Iterator[FloatArray]:
        """Yield the sums of the gaps; where the rate is constant, of unit gaps."""
        gamma, time = Gamma(1.0, self.burstiness), 0.0
        for first in count(0, rows):
            gaps = gamma.unit_gaps(rng, rows) / self.rates(
                np.arange(first, first + rows, dtype=float), requests
            )
            gaps[0] += time
            moments = np.cumsum(gaps)
            time = moments[-1]
            yield moments
