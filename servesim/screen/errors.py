"""How comparisons with measured runs are written: names of figures, units, errors."""

from __future__ import annotations

from math import isnan
from typing import NamedTuple

from servesim.screen.figures import number
from servesim.validate.measured import THROUGHPUT, Figure


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
    """Return a relative error with its sign: ``+4.0%``; ``-`` where it is not known."""
    return "-" if isnan(error) else f"{error:+.1%}"


def share(value: float) -> str:
    """Return an absolute error: ``4.0%``; ``-`` where it is not known."""
    return "-" if isnan(value) else f"{value:.1%}"
