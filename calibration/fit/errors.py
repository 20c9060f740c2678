"""How far predicted times are from measured ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Errors:
    """Relative errors predicted / measured - 1 in percent: median, mean and p90 of their size; mean."""

    mdape: float
    mape: float
    p90: float
    bias: float
    n: int

    @classmethod
    def of(cls, predicted: ArrayLike, measured: ArrayLike) -> Errors:
        """Return the errors of arrays of times; at least one."""
        signed = 100 * (np.asarray(predicted) / np.asarray(measured) - 1)
        size = np.abs(signed)
        figures = (np.median(size), size.mean(), np.percentile(size, 90), signed.mean())
        return cls(*(round(float(figure), 1) for figure in figures), n=len(size))

    @classmethod
    def mean(cls, several: Sequence[Errors]) -> Errors:
        """Return the mean of each figure; ``n`` is the first's."""
        names = ("mdape", "mape", "p90", "bias")
        figures = (sum(getattr(errors, name) for errors in several) / len(several) for name in names)
        return cls(*(round(figure, 2) for figure in figures), n=several[0].n)

    def __str__(self) -> str:
        return f"{self.mdape:.1f} / {self.mape:.1f} / {self.p90:.1f} / {self.bias:+.1f}"
