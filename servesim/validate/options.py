"""Options that are numbers, read strictly."""

from __future__ import annotations

from math import isfinite

from servesim.check import Problem


def option_of(name: str) -> str:
    """Return an option as it is typed."""
    return f"--{name.replace('_', '-')}"


def whole(name: str, text: str | None, most: int, found: list[Problem]) -> int | None:
    """Return a whole number from 1 to ``most``; None, and a problem in ``found``, where it is none."""
    if text is None:
        return None
    if text.isdecimal() and text.isascii() and len(text) <= len(str(most)) and 1 <= int(text) <= most:
        return int(text)
    found.append(Problem(option_of(name), text, f"must be a whole number, at least 1 and at most {most:,}"))
    return None


def seconds_of(text: str | None, found: list[Problem]) -> float | None:
    """Return seconds above 0; None, and a problem in ``found``, where it is none."""
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if isfinite(seconds) and seconds > 0:
        return seconds
    found.append(Problem("--ttft-limit", text, "must be a number of seconds above 0"))
    return None
