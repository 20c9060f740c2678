"""The points of a sweep, seen by two of their figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from servesim.frontier.pareto import on_front
from servesim.report.frontier.points import CLEAN
from servesim.report.metrics import Metric
from servesim.report.scale import Scale

Floats = NDArray[np.float64]

#: The column of how far a configuration is from the baseline.
DIFFERENCE = "difference"

_REACH = 1.15  # of the highest point: bands that reach further are cut


@dataclass(frozen=True)
class View:
    """Points seen by two of their figures, in the units of the axes."""

    points: pd.DataFrame
    x: Metric
    y: Metric

    def values(self, metric: Metric, end: str = "") -> Floats:
        """Return a figure of every point, or the ``.low`` or ``.high`` end of its interval; NaN: none."""
        column = f"{metric.column}{end}"
        name = column if column in self.points else metric.column
        values: Floats = self.points[name].to_numpy(float) * metric.scale
        return np.where(np.isnan(values), self.values(metric), values) if end else values

    @property
    def there(self) -> NDArray[np.bool_]:
        """Say which points have both figures; on a logarithmic axis, only what is positive has a place."""
        sides = (self.values(self.x), self.x), (self.values(self.y), self.y)
        there = [np.isfinite(values) & ((values > 0) | (not side.logarithmic)) for values, side in sides]
        both: NDArray[np.bool_] = there[0] & there[1]
        return both

    def scale(self, metric: Metric, shown: Sequence[float] = ()) -> Scale:
        """Return the axis: as long as the points need it, and a little longer for their intervals.

        Of a difference, what counts is whether its interval holds 0, so that it is seen whole. ``shown`` has
        a place on the axis, too.
        """
        there = self.there
        values = np.append(self.values(metric)[there], shown)
        if metric.column == DIFFERENCE:
            ends = [self.values(metric, end)[there] for end in (".low", ".high")]
            return Scale.around(np.concatenate([values, *ends]), False)
        if metric.logarithmic or not len(values):
            return Scale.around(values, metric.logarithmic)
        highest = np.minimum(self.values(metric, ".high")[there].max(initial=0.0), _REACH * values.max())
        if metric.unit == "%":
            highest = min(highest, 100.0)
        return Scale.around(np.append(values, highest), False)

    @property
    def front(self) -> NDArray[np.bool_]:
        """Say which points none of the same traffic beats in both figures.

        Only clean points that are not saturated can be.
        """
        pairs = np.column_stack([self.values(self.x), self.values(self.y)])
        eligible = (self.points.state == CLEAN).to_numpy() & self.there
        front = np.zeros(len(pairs), bool)
        for traffic in self.points.traffic.unique():
            own = eligible & (self.points.traffic == traffic).to_numpy()
            front |= on_front(np.where(own[:, None], pairs, np.nan), [self.x.best > 0, self.y.best > 0])
        return front

    def joined(self) -> NDArray[np.int64]:
        """Return the points from which a line leads to the next: to the next load, and through no hole."""
        config = self.points.config.to_numpy()
        whole = self.there & ~self.points.hole.to_numpy(bool)
        return np.flatnonzero((config[:-1] == config[1:]) & whole[:-1] & whole[1:])
