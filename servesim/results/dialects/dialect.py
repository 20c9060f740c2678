"""A dialect: the metrics of one tool, what each of them means, and its statistics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from servesim.results.dialects.sample import Sample
from servesim.results.dialects.statistics import Statistics

#: A single figure, or statistics of a sample by name; None: there is nothing to say.
Value = float | Statistics | None


@dataclass(frozen=True)
class Metric:
    """One metric of a tool.

    Attributes:
        name: as the tool writes it.
        unit: of its value.
        meaning: what it is, in one line.
        of: the single figure of a run, or the sample that the dialect's statistics are of.
        scale: what the values of that sample are multiplied by to have the unit.
        header: what the tool calls it in words, where it does.
        single: whether it is one figure of the run.
    """

    name: str
    unit: str
    meaning: str
    of: Callable[[Sample], Any]
    scale: float = 1.0
    header: str = ""
    single: bool = False


@dataclass(frozen=True)
class Dialect:
    """The metrics of one tool.

    Attributes:
        name: the value of the key ``metrics``.
        title: what the tool is called.
        metrics: its metrics in order of reading.
        statistics: what it tells of a sample.
        shown: those of the statistics that a screen has room for.
    """

    name: str
    title: str
    metrics: tuple[Metric, ...]
    statistics: Callable[[Any], Statistics]
    shown: tuple[str, ...]

    def value(self, metric: Metric, sample: Sample) -> Value:
        """Return a metric of a run in its unit."""
        found = metric.of(sample)
        if metric.single:
            return None if found is None else float(found) if isinstance(found, float) else int(found)
        statistics = found if isinstance(found, Mapping) else self.statistics(found)
        return {
            name: each if each is None or name == "count" else each * metric.scale
            for name, each in statistics.items()
        }

    def section(self, sample: Sample) -> dict[str, Any]:
        """Return the section ``metrics`` of a summary: values and definitions by the names of the metrics."""
        return {
            "dialect": self.name,
            "values": {metric.name: self.value(metric, sample) for metric in self.metrics},
            "definitions": {
                metric.name: {"unit": metric.unit, "meaning": metric.meaning} for metric in self.metrics
            },
        }
