"""Several measured runs in a row: where the knee is, measured and simulated."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import NamedTuple

from servesim.validate.compare import Comparison
from servesim.validate.measured import Measured
from servesim.validate.readers.problems import as_number
from servesim.validate.readers.spelling import plain

#: What passes the limit at the knee.
TAIL = ("ttft", "p99")
#: What columns of rates are called, and how near to the rate of sending one of another name must be.
_RATES = ("qps", "rps", "rate", "rate_rps", "request_rate", "arrival_rate", "offered_rps", "requests_per_s")
_NEAR = 0.3


class Knee(NamedTuple):
    """The lowest of several rates (requests/s) at which p99 TTFT is above a limit (s); None: at none of them.

    ``rates`` are those of the runs, ascending; ``name`` is what the runs have in common, and others not.
    """

    limit_s: float
    rates: tuple[float, ...]
    measured_rps: float | None
    simulated_rps: float | None
    name: str = ""

    @property
    def error(self) -> float | None:
        """Return simulated / measured - 1; None where one has no knee, or passed it before the first rate."""
        if self.measured_rps is None or self.simulated_rps is None:
            return None
        if self.rates[0] in (self.measured_rps, self.simulated_rps):
            return None
        return self.simulated_rps / self.measured_rps - 1


def series(comparisons: Sequence[Comparison]) -> dict[str, list[Comparison]]:
    """Return the runs in groups that differ in their rate alone, each with a name that tells it apart.

    Runs of one table differ by its other columns of ``--by``; any runs by their model and tensor parallelism.
    """
    rates = _rate_columns([each.measured for each in comparisons])
    groups: dict[tuple[tuple[str, str], ...], list[Comparison]] = {}
    for each in comparisons:
        run = each.measured
        about = {"model": str(run.model), "TP": str(run.tensor_parallel_size), **run.labels}
        key = tuple((name, value) for name, value in about.items() if name not in rates)
        groups.setdefault(key, []).append(each)
    common = set.intersection(*(set(key) for key in groups))
    return {
        " ".join(shortly(*pair) for pair in key if pair not in common): each for key, each in groups.items()
    }


def shortly(name: str, value: str) -> str:
    """Return a value with the name of its column, which a number needs and a word does not."""
    number = as_number(value)
    return value if number is None or isnan(number) else f"{name}={value}"


def _rate_columns(runs: Sequence[Measured]) -> set[str]:
    """Return the columns whose values are the runs' rates, by what they are called or by their values."""
    columns = dict.fromkeys(name for run in runs for name in run.labels)
    return {name for name in columns if plain(name)[0] in _RATES or all(_is_rate(run, name) for run in runs)}


def _is_rate(run: Measured, column: str) -> bool:
    value, rate = as_number(run.labels.get(column)), run.offered_rps
    return value is not None and rate is not None and abs(value / rate - 1) <= _NEAR


def knees(comparisons: Sequence[Comparison], limit_s: float) -> list[Knee]:
    """Return the knee of each group of runs that differ in their rate alone and have two rates at least."""
    found = ((name, knee(each, limit_s)) for name, each in series(comparisons).items())
    return [each._replace(name=name) for name, each in found if each is not None]


def knee(comparisons: Sequence[Comparison], limit_s: float) -> Knee | None:
    """Return where the p99 TTFT of runs at several rates passes a limit; None with fewer than two rates.

    Args:
        comparisons: one for each run; those without a rate or a p99 TTFT on both sides do not count.
        limit_s: the limit in seconds.

    """
    runs = sorted(
        (each.measured.offered_rps or 0.0, *each.figures[TAIL])
        for each in comparisons
        if is_rated(each, TAIL)
    )
    if len(runs) < 2:
        return None
    first = [next((run[0] for run in runs if run[side] > limit_s), None) for side in (1, 2)]
    return Knee(limit_s, tuple(run[0] for run in runs), first[0], first[1])


def is_rated(comparison: Comparison, figure: tuple[str, str]) -> bool:
    """Tell whether a run has a rate, and the figure measured and simulated."""
    return comparison.measured.offered_rps is not None and not isnan(comparison.error(*figure))
