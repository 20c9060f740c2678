"""Arrivals whose rate follows a curve: a day, a ramp, a burst."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np

from servesim.check import MOST_S, Problem, quantity
from servesim.workload.arrivals import LEAST_RPS, MOST_RPS
from servesim.workload.batch import FloatArray
from servesim.workload.table import Table, row_problems


@dataclass(frozen=True)
class Schedule:
    """A Poisson process with piecewise-constant rate, repeated every ``period_s``.

    ``rates`` holds rows ``(start_s, rate_rps)``; a rate holds until the next row starts, the last one until
    the period ends (for ever where ``period_s`` is null). A rate may be 0: nothing is sent then.

    Time rescaling: with L(t) the integral of the rate up to t, the moments L^-1(u_i) of a unit-rate Poisson
    process u_i are those of the process with that rate (Cinlar, Introduction to Stochastic Processes, 1975,
    section 4.7). L is piecewise linear, so its inverse is exact and nothing is thinned away.
    """

    rates: Table
    period_s: float | None = quantity("s", at_least=1e-3, at_most=MOST_S, default=None)

    hints: ClassVar[Mapping[str, str]] = {"rate_rps": "set the rates of the curve, workload.arrivals.rates"}

    def unit_gaps(self, rng: np.random.Generator, count: int) -> FloatArray:
        """Draw exponential gaps with mean 1, the same as those of a Poisson process with fixed rate."""
        return rng.standard_exponential(count)

    def times(self, unit_times: FloatArray) -> FloatArray:
        """Map cumulated unit gaps to seconds: L^-1."""
        periods, rest = np.divmod(unit_times, self._cumulated[-1])
        row = np.searchsorted(self._cumulated, rest, side="right") - 1
        within = self._start[row] + (rest - self._cumulated[row]) / self._rate[row]
        before = 0.0 if self.period_s is None else periods * self.period_s
        # Rounding at a step of the curve may swap two moments by an ulp; sending has an order.
        return np.maximum.accumulate(before + within)

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong with the rows of the curve, each with its index, and with its end."""
        columns = "start (s), rate (requests/s)"
        malformed = list(row_problems("rates", self.rates, columns, most=[MOST_S, MOST_RPS]))
        yield from malformed or [*self._order_problems(), *self._end_problems()]

    def _order_problems(self) -> Iterator[Problem]:
        if self.rates[0][0] != 0:
            yield Problem("rates[0]", self.rates[0], "the first row must start at 0 (s)")
        for index, row in enumerate(self.rates):
            if 0 < row[1] < LEAST_RPS:
                yield Problem(
                    f"rates[{index}]", row, f"must have a rate of 0 or at least {LEAST_RPS:g} (requests/s)"
                )
        for index, ((before, _), row) in enumerate(pairwise(self.rates), start=1):
            if row[0] <= before:
                message = f"must start after the row before it, above {before:g} (s)"
                yield Problem(f"rates[{index}]", row, message)

    def _end_problems(self) -> Iterator[Problem]:
        start, rate = self.rates[-1]
        if self.period_s is not None and self.period_s <= start:
            message = f"must be above the start of the last row, {start:g} (s)"
            yield Problem("period_s", self.period_s, message)
        if not any(rate for _, rate in self.rates):
            yield Problem("rates", self.rates, "at least one rate must be above 0 (requests/s)")
        elif self.period_s is None and not rate:
            message = "the last rate must be above 0 (requests/s) where period_s is null: it holds for ever"
            yield Problem(f"rates[{len(self.rates) - 1}]", self.rates[-1], message)

    @cached_property
    def _start(self) -> FloatArray:
        return np.array([start for start, _ in self.rates], dtype=np.float64)

    @cached_property
    def _rate(self) -> FloatArray:
        return np.array([rate for _, rate in self.rates], dtype=np.float64)

    @cached_property
    def _cumulated(self) -> FloatArray:
        """Requests expected before each row starts, and, last, before the period ends."""
        end = math.inf if self.period_s is None else self.period_s
        expected = self._rate * np.diff(np.append(self._start, end))
        return np.concatenate(([0.0], np.cumsum(expected)))
