"""How many turns a conversation has."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from servesim.check import Problem, quantity

#: More than anybody reads back; the geometric distribution is cut here.
MOST_TURNS = 10_000


class Turns(Protocol):
    """A distribution of the number of turns, at least 1."""

    @property
    def mean(self) -> float:
        """Return the mean number of turns."""

    def of(self, share: float) -> int:
        """Return the number that a ``share`` of the conversations, from 0 up to 1, does not pass."""


@dataclass(frozen=True)
class Fixed:
    """Every conversation has as many turns."""

    count: int = quantity("turns", at_least=1, at_most=MOST_TURNS)

    @property
    def mean(self) -> float:
        """Return the number of turns."""
        return float(self.count)

    def of(self, share: float) -> int:
        """Return the number of turns."""
        return self.count


@dataclass(frozen=True)
class Geometric:
    """From 1 turn on: after each the conversation ends with probability 1 / ``turns``, their mean."""

    turns: float = quantity("turns on average", at_least=1, at_most=MOST_TURNS / 10)

    @property
    def mean(self) -> float:
        """Return the mean number of turns."""
        return self.turns

    def of(self, share: float) -> int:
        """Invert P(turns > k) = (1 - 1/mean)^k."""
        if self.turns == 1:
            return 1
        tail = math.log1p(-share) / math.log1p(-1 / self.turns)
        return min(max(math.ceil(tail), 1), MOST_TURNS)


@dataclass(frozen=True)
class Uniform:
    """Every number from ``least`` to ``most`` is equally likely."""

    least: int = quantity("turns", at_least=1, at_most=MOST_TURNS)
    most: int = quantity("turns", at_least=1, at_most=MOST_TURNS)

    def problems(self) -> Iterator[Problem]:
        """Yield a problem where there is no number between the two."""
        if self.most < self.least:
            yield Problem("most", self.most, f"must be at least least, {self.least} (turns)")

    @property
    def mean(self) -> float:
        """Return the mean number of turns."""
        return (self.least + self.most) / 2

    def of(self, share: float) -> int:
        """Return one of the equally likely numbers."""
        return self.least + int(share * (self.most - self.least + 1))
