"""Smooth maxima and minima of times."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

#: What the forms take for a size or return as a time: a number or an array of them.
Values = FloatArray | np.float64 | float


def overlapped(a: Values, b: Values, sharpness: float) -> FloatArray:
    """Return (a^p + b^p)^(1/p): the time of two things done at once, p = ``sharpness``.

    p = 1 is one after the other, p to infinity perfect overlap: max(a, b).
    """
    larger = np.maximum(np.maximum(a, b), 1e-300)
    shares: FloatArray = (np.asarray(a) / larger) ** sharpness + (np.asarray(b) / larger) ** sharpness
    return larger * shares ** (1 / sharpness)


def better(a: Values, b: Values, sharpness: float) -> FloatArray:
    """Return (a^-p + b^-p)^(-1/p): the time of the better of two ways, blurred where they are close."""
    smaller = np.minimum(a, b)
    shares: FloatArray = (smaller / np.asarray(a)) ** sharpness + (smaller / np.asarray(b)) ** sharpness
    return smaller / shares ** (1 / sharpness)
