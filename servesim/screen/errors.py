"""How comparisons with measured runs are written: names of figures, units, errors."""

from __future__ import annotations

from math import isnan
from typing import NamedTuple

from servesim.screen.figures import number
from servesim.validate.measured import THROUGHPUT, Figure
from servesim.validate.tolerance import Verdict

#: Errors from this on are told in whole per cent.
_MANY = 9.995


class Unit(NamedTuple):
    """What a metric is called, in which unit it is told, and how many of the unit its value is times one."""

    title: str
    unit: str
    scale: float


_LATENCIES = {
    "ttft": Unit("TTFT", "ms", 1e3),
    "tpot": Unit("TPOT", "ms", 1e3),
    "itl": Unit("ITL", "ms", 1e3),
    "e2e": Unit("E2E", "s", 1.0),
}
_RATES = {
    "requests": Unit("Requests", "requests/s", 1.0),
    "output_tokens": Unit("Output", "tokens/s", 1.0),
}


def unit_of(metric: str, statistic: str = "") -> Unit:
    """Return how a metric is told; of throughput, each of its rates."""
    return _RATES[statistic] if metric == THROUGHPUT else _LATENCIES[metric]


def title_of(figure: Figure) -> str:
    """Return what a figure is called: ``TTFT p50 (ms)``, ``Output (tokens/s)``."""
    metric, statistic = figure
    unit = unit_of(metric, statistic)
    name = unit.title if metric == THROUGHPUT else f"{unit.title} {statistic}"
    return f"{name} ({unit.unit})"


def told(figure: Figure, value: float) -> str:
    """Return a value of a figure in its unit."""
    return "-" if isnan(value) else number(value, unit_of(*figure).scale)


def signed_percent(error: float) -> str:
    """Return a relative error with its sign: ``+4.0%``, ``+1,240%``; ``-`` where it is not known."""
    if isnan(error):
        return "-"
    return f"{error:+,.0%}" if error >= _MANY else f"{error:+.1%}"


def share(value: float) -> str:
    """Return an absolute error: ``4.0%``; ``-`` where it is not known."""
    if isnan(value):
        return "-"
    return f"{value:,.0%}" if value >= _MANY else f"{value:.1%}"


def verdict_words(verdict: Verdict) -> tuple[str, str]:
    """Return what a tolerance came out at and its limit: in per cent, or of a distance as numbers."""
    if verdict.name.endswith(".ks"):
        return f"{verdict.value:.3f}", f"{verdict.limit:g}"
    return share(abs(verdict.value)), share(verdict.limit)
