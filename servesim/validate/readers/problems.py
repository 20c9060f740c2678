"""What is wrong with a file of measurements, gathered so that one error tells all of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite, nan
from typing import Any, NoReturn

import numpy as np

from servesim.check import ConfigError, Problem
from servesim.validate.measured import Floats, Integers
from servesim.workload.lengths import MOST_TOKENS

#: Bad values that an error lists one by one; the rest it counts.
MOST_LISTED = 20
#: Where a value stands, from its number: "line 7, ttft_s" or "ttfts[6]".
Place = Callable[[int], str]


class Findings:
    """Reads values one by one and remembers what is wrong with some, under the name of their file."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._problems: list[Problem] = []
        self._unlisted = 0

    def add(self, place: str, value: object, message: str) -> None:
        """Remember one thing that is wrong."""
        if len(self._problems) < MOST_LISTED:
            where = f"{self.source}, {place}" if place else self.source
            self._problems.append(Problem(where, value, message))
        else:
            self._unlisted += 1

    def numbers(self, values: Sequence[Any], place: Place, unit_s: float = 1.0, least: float = 0.0) -> Floats:
        """Read times as seconds, from ``unit_s`` seconds each; what is missing (None, blank) is NaN."""
        found = np.full(len(values), nan)
        for index, value in enumerate(values):
            number = as_number(value)
            if number is None:
                continue
            if isfinite(number) and number >= least:
                found[index] = number * unit_s
            else:
                self.add(place(index), value, f"must be a number, at least {least:g}")
        return found

    def times(self, values: Sequence[Any], place: Place, unit_s: float = 1.0) -> Floats:
        """Read moments as :meth:`numbers` does; each must be there."""
        found = self.numbers(values, place, unit_s, least=-1e12)
        self._missing(values, place, "must be a time; the moment of sending is missing")
        return found

    def tokens(self, values: Sequence[Any], place: Place, least: int = 1) -> Integers:
        """Read whole numbers of tokens; each must be there."""
        found = np.zeros(len(values), dtype=np.int64)
        for index, value in enumerate(values):
            number = as_number(value)
            if number is not None and number == round_or_nan(number) and least <= number <= MOST_TOKENS:
                found[index] = int(number)
            else:
                message = f"must be a whole number, at least {least} and at most {MOST_TOKENS:,} (tokens)"
                self.add(place(index), value, message)
        return found

    def _missing(self, values: Sequence[Any], place: Place, message: str) -> None:
        for index, value in enumerate(values):
            if as_number(value) is None:
                self.add(place(index), value, message)

    def check(self) -> None:
        """Raise what has been found, if anything.

        Raises:
            ConfigError: listing it.
        """
        if self._unlisted:
            self._problems.append(Problem(self.source, None, f"{self._unlisted:,} more values are wrong"))
        if self._problems:
            raise ConfigError(self._problems)


def as_number(value: object) -> float | None:
    """Return a value as a number; None where there is none, NaN where it is something else."""
    if value is None or (isinstance(value, str) and value.strip().lower() in ("", "nan", "none", "null")):
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return nan
    try:
        number = float(value) if not isinstance(value, str) or "_" not in value else nan
    except (ValueError, OverflowError):
        return nan
    return None if isinstance(value, float) and number != number else number


def round_or_nan(number: float) -> float:
    """Return the whole number nearest to a number; NaN where it is not finite."""
    return float(round(number)) if isfinite(number) else nan


def refuse(source: str, message: str) -> NoReturn:
    """Raise that a file as a whole cannot be used.

    Raises:
        ConfigError: always.
    """
    raise ConfigError([Problem(source, None, message)])
