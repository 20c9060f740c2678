"""Dividing: by what may be nothing, and by the GPUs paid for."""

from __future__ import annotations

from math import nan


def ratio(part: float, whole: float) -> float:
    """Return part / whole, or NaN where there is nothing to divide by."""
    return part / whole if whole else nan


def per_gpu(rates: dict[str, float], gpus: int) -> dict[str, float]:
    """Return the rates divided by a number of GPUs, under names that say so."""
    return {f"{name}_per_gpu": rate / gpus for name, rate in rates.items()}
