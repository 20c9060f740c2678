"""Fields of a request: what a file calls them, how a column of them is read, and the rule they keep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from servesim.workload.batch import IntArray
from servesim.workload.formats.cells import LATEST_S, MOST_TOKENS, whole_ids
from servesim.workload.formats.recording import Ragged

NS = 10**9  # nanoseconds of a second

#: What a rule of a field says, for text and for JSON alike.
TOKENS_RULE = f"must be a whole number from {{}} to {MOST_TOKENS:,} (tokens)"
BLOCKS_RULE = "must be a list of whole numbers from 0 to 2^64 - 1, one for each block"


class Field(NamedTuple):
    """A field of each request.

    ``read`` turns a column of values into numbers, and raises ValueError if one of them breaks ``rule``.
    """

    role: str
    name: str
    read: Callable[[Sequence[Any]], IntArray | Ragged]
    rule: str
    unit: str = ""

    @property
    def told(self) -> str:
        """Return its name, with its unit where a reader could doubt."""
        return f"{self.name} ({self.unit})" if self.unit else self.name

    def accepts(self, value: object) -> bool:
        """Return whether a value keeps the rule."""
        try:
            self.read([value])
        except ValueError:
            return False
        return True


def whole(values: Sequence[Any], at_least: int, at_most: int = MOST_TOKENS) -> IntArray:
    """Read whole numbers of JSON, such as 12 or 12.0."""
    numbers = _numbers(values)
    if not np.all((numbers >= at_least) & (numbers <= at_most) & (numbers == np.rint(numbers))):
        raise ValueError
    return numbers.astype(np.int64)


def moments(values: Sequence[Any], unit_ns: float) -> IntArray:
    """Read times of JSON in a unit of so many nanoseconds, as nanoseconds from 0 to ``LATEST_S``.

    Whole numbers of whole nanoseconds are exact; others are rounded, as doubles are.
    """
    numbers = _numbers(values)
    if not np.all((numbers >= 0) & (numbers <= LATEST_S * NS / unit_ns)):  # a NaN is in no interval
        raise ValueError
    if set(map(type, values)) <= {int} and unit_ns == int(unit_ns):
        return np.array(values, dtype=np.int64) * int(unit_ns)
    return np.rint(numbers * unit_ns).astype(np.int64)


def ids(values: Sequence[Any]) -> Ragged:
    """Read lists of whole numbers of 64 bits."""
    if not set(map(type, values)) <= {list}:
        raise ValueError
    items = list(chain.from_iterable(values))
    if not set(map(type, items)) <= {int}:
        raise ValueError
    counts = np.fromiter(map(len, values), dtype=np.int64, count=len(values))
    return Ragged(whole_ids(items), counts)


def tokens(role: str, name: str, at_least: int) -> Field:
    """Return a field of tokens in JSON."""
    return Field(role, name, partial(whole, at_least=at_least), TOKENS_RULE.format(at_least))


def moment(name: str, unit_ns: float) -> Field:
    """Return a field of times in JSON, in a unit of so many nanoseconds."""
    rule = f"must be a number from 0 to {LATEST_S * NS / unit_ns:,.6g} ({_unit(unit_ns)})"
    return Field("time_ns", name, partial(moments, unit_ns=unit_ns), rule, _unit(unit_ns))


def _unit(unit_ns: float) -> str:
    known = {1: "ns", 1_000: "us", 1_000_000: "ms", NS: "s"}
    return known.get(int(unit_ns), f"units of {unit_ns / NS:g} s")


def _numbers(values: Sequence[Any]) -> np.ndarray:
    """Return numbers as doubles; truth values, text and nothing are none."""
    if not set(map(type, values)) <= {int, float}:
        raise ValueError
    try:
        return np.array(values, dtype=np.float64)
    except OverflowError:
        raise ValueError from None
