"""The scale of an axis: where it begins and ends, and its ticks."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_MARGIN = 0.08  # of the axis, beyond the first and the last point
_FEWEST_TICKS = 2  # with fewer of them, Plotly finds ticks
_FEW_DECADES = 3.5  # up to so many, there are ticks at 1, 2 and 5


@dataclass(frozen=True)
class Scale:
    """An axis from ``low`` to ``high``."""

    low: float
    high: float
    logarithmic: bool = False

    @classmethod
    def around(cls, values: Floats, logarithmic: bool) -> Scale:
        """Return the scale that shows all values; a linear one shows 0, too."""
        if not len(values):
            return cls(0.1, 1.0, logarithmic) if logarithmic else cls(0.0, 1.0)
        low, high = float(values.min()), float(values.max())
        if logarithmic:
            margin = max(_MARGIN * log10(high / low), 0.1)
            return cls(low / 10**margin, high * 10**margin, True)
        start, end = min(low, 0.0), max(high, 0.0)
        margin = _MARGIN * ((end - start) or 1.0)
        return cls(start - margin if start < 0 else 0.0, end + margin)

    @property
    def ends(self) -> tuple[float, float]:
        """Where it begins and ends."""
        return self.low, self.high

    def place(self, values: Floats) -> Floats:
        """Return where values lie, so that equal distances look equal."""
        return np.log10(values) if self.logarithmic else values

    def value(self, places: Floats) -> Floats:
        """Return what :meth:`place` puts at these places."""
        return 10.0**places if self.logarithmic else places

    def within(self, bound: float, best: int) -> tuple[float, float]:
        """Return the part above a bound (``best`` > 0) or below it; out of sight, it ends first."""
        return (max(bound, self.low), self.high) if best > 0 else (self.low, min(bound, self.high))

    def axis(self, most_ticks: int = 12) -> dict[str, Any]:
        """Return the axis as Plotly's layout has it; a logarithmic one with few enough ticks."""
        if not self.logarithmic:
            return {"range": [self.low, self.high], "tickformat": ",~g"}
        decades = range(floor(log10(self.low)), ceil(log10(self.high)) + 1)
        short = log10(self.high / self.low) <= _FEW_DECADES
        for steps in ((1, 2, 5), (1, 3), (1,)) if short else ((1,),):
            ticks = [step * 10.0**power for power in decades for step in steps]
            shown = [tick for tick in ticks if self.low <= tick <= self.high]
            if len(shown) <= most_ticks:
                break
        axis = {"type": "log", "range": [log10(self.low), log10(self.high)]}
        if len(shown) < _FEWEST_TICKS:
            return axis | {"nticks": 6, "tickformat": ",~g"}
        return axis | {"tickvals": shown, "ticktext": [f"{tick:,.10g}" for tick in shown]}
