"""A measured run and its replay side by side: errors of figures, distances of distributions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import nan
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from servesim.results.result import Result
from servesim.validate.load import by_load
from servesim.validate.measured import METRICS, RATES, STATISTICS, THROUGHPUT, Figure, Floats, Measured
from servesim.validate.simulated import observed

if TYPE_CHECKING:
    import pandas as pd

#: Latencies that each request has; the gaps between tokens are pooled.
PER_REQUEST = ("ttft", "tpot", "e2e")
#: Every figure that a comparison may have, in the order in which they are told.
FIGURES: tuple[Figure, ...] = (
    *((metric, statistic) for metric in METRICS for statistic in STATISTICS),
    *((THROUGHPUT, rate) for rate in RATES),
)


class Distance(NamedTuple):
    """How far two samples are apart: the largest difference of their distribution functions, and their sizes.

    That is the two-sample Kolmogorov-Smirnov statistic, from 0 to 1, the same whichever sample is first.
    """

    ks: float
    measured_n: int
    simulated_n: int


class Spread(NamedTuple):
    """Errors of single requests: the median of their absolute values, and of how many requests."""

    mdape: float
    n: int


@dataclass(frozen=True, eq=False)
class Comparison:
    """A measured run beside the simulated one; an error is simulated / measured - 1.

    Figures are of all successful requests, from the first sending to the last token. Percentiles of a replay
    with made-up equal lengths are NaN: only means are comparable. ``summary`` is that of the simulated run.
    """

    measured: Measured
    simulated: Measured
    summary: Mapping[str, Any] | None = None

    def table(self) -> pd.DataFrame:
        """Return the figures that both runs have: metric, statistic, measured, simulated, error.

        Latencies are in seconds, rates per second.
        """
        import pandas as pd

        rows = [
            (metric, statistic, values[0], values[1], relative_error(*values))
            for (metric, statistic), values in self.figures.items()
        ]
        return pd.DataFrame(rows, columns=["metric", "statistic", "measured", "simulated", "error"])

    @cached_property
    def figures(self) -> dict[Figure, tuple[float, float]]:
        """Return (measured, simulated) of each figure that both have."""
        measured, simulated = figures(self.measured), figures(self.simulated)
        return {
            each: (measured[each], simulated[each] if comparable(self.measured, each) else nan)
            for each in FIGURES
            if each in measured and each in simulated
        }

    def error(self, metric: str, statistic: str) -> float:
        """Return the relative error of a figure; NaN where one of the runs lacks it."""
        return relative_error(*self.figures.get((metric, statistic), (nan, nan)))

    @cached_property
    def ks(self) -> dict[str, Distance]:
        """Return the distance of the distributions of each latency that both runs have samples of."""
        pairs = {metric: (self.measured.sample(metric), self.simulated.sample(metric)) for metric in METRICS}
        return {metric: distance(*pair) for metric, pair in pairs.items() if all(map(len, pair))}

    @cached_property
    def per_request(self) -> dict[str, Spread]:
        """Return the errors of single requests, of each latency that requests have in both runs.

        Request i of the replay is request i of the measured run.
        """
        return {
            metric: Spread(float(np.median(np.abs(errors))), len(errors))
            for metric in PER_REQUEST
            if len(errors := self._errors(metric))
        }

    def by_load(self) -> pd.DataFrame:
        """Return the mean latencies and their errors by how many requests were under way at the sending."""
        return by_load(self.measured, self.simulated)

    def _errors(self, metric: str) -> Floats:
        measured, simulated = self.measured.column(metric), self.simulated.column(metric)
        known = (measured > 0) & ~np.isnan(simulated)
        errors: Floats = simulated[known] / measured[known] - 1
        return errors


def compare(measured: Measured, result: Result) -> Comparison:
    """Return the comparison of a measured run with the result of its replay."""
    return Comparison(measured, observed(result), result.summary)


def comparable(measured: Measured, figure: Figure) -> bool:
    """Tell whether a figure of a run's replay means what it means of the run.

    Percentiles do not where the file has no requests, and all that are sent have the mean lengths.
    """
    return not measured.mean_lengths or figure[0] == THROUGHPUT or figure[1] == "mean"


def figures(run: Measured) -> dict[Figure, float]:
    """Return what is known of a run's figures: as it states them, or else worked out from its requests."""
    if run.stated:
        return {(metric, name): value for metric, row in run.stated.items() for name, value in row.items()}
    found: dict[Figure, float] = {}
    for metric in METRICS:
        sample = run.sample(metric)
        if len(sample):
            values = [float(np.mean(sample)), *np.percentile(sample, (50, 90, 99)).tolist()]
            found |= {(metric, name): value for name, value in zip(STATISTICS, values, strict=True)}
    if run.span_s > 0:
        done = ~np.isnan(run.e2e_s) | ~np.isnan(run.ttft_s)
        amounts = (np.count_nonzero(done), run.output_tokens[done].sum())
        found |= {
            (THROUGHPUT, name): float(amount) / run.span_s
            for name, amount in zip(RATES, amounts, strict=True)
        }
    return found


def relative_error(measured: float, simulated: float) -> float:
    """Return simulated / measured - 1; 0 where they are equal, NaN where nothing was measured."""
    if measured == simulated:
        return 0.0
    return simulated / measured - 1 if measured > 0 else nan


def distance(measured: Floats, simulated: Floats) -> Distance:
    """Return how far the distributions of two samples are apart."""
    from scipy.stats import ks_2samp

    with np.errstate(divide="ignore"):  # in the p-value, which is not asked for
        statistic = float(ks_2samp(measured, simulated, method="asymp").statistic)
    return Distance(statistic, len(measured), len(simulated))
