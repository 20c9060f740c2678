"""How figures are written on the screen."""

from __future__ import annotations

from math import floor, log10
from typing import Any

_CENT = 0.01
_LONG_S = 999.9995  # from here on, milliseconds have seven digits
_LEAST_USD = 1e-9  # below it, no number of digits is worth reading


def number(value: float | None, scale: float = 1.0) -> str:
    """Return three significant digits, or whole numbers with their thousands marked."""
    if value is None:
        return "-"
    value *= scale
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"


def signed(value: float) -> str:
    """Return a difference as :func:`number` writes it, with its sign."""
    return f"{'-' if value < 0 else '+'}{number(abs(value))}"


def percent(share: float | None, decimals: int = 1) -> str:
    """Return a share of 1 in per cent, cut, not rounded: what falls short of a target never reads as it."""
    if share is None:
        return "-"
    cut = floor(round(share * 10 ** (decimals + 2), 6)) / 10**decimals
    return f"{cut:.{decimals}f}%"


def scale_of(*seconds: float | None) -> float:
    """Return the units of a second in which to tell times: seconds where one has seven digits in ms."""
    return 1.0 if max((each or 0.0 for each in seconds), default=0.0) >= _LONG_S else 1e3


def rounded_percent(share: float | None) -> str:
    """Return a share of 1 in per cent, rounded: for shares that are held against no target."""
    return "-" if share is None else f"{share:.1%}"


def dollars(usd: float | None) -> str:
    """Return dollars and cents; of less than a cent, three significant digits."""
    return "-" if usd is None else f"${money(usd)}"


def money(usd: float | None) -> str:
    """Return dollars as :func:`dollars` does, for a column whose heading has the sign."""
    if usd is None:
        return "-"
    if _LEAST_USD <= usd < _CENT:
        return f"{usd:.{2 - floor(log10(usd))}f}"
    return f"{usd:,.2f}"


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: "1 request", "1,200 requests"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def typed(value: Any) -> str:
    """Return a value as it would be typed on the command line; of a table, how long it is."""
    if isinstance(value, list):
        return counted(len(value), "row")
    if isinstance(value, bool):
        return str(value).lower()
    return "null" if value is None else str(value)
