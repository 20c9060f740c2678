"""The leaps of a run by replica, and the steps that they are made of, numbered through."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from servesim.results.runs import Floats, Integers
from servesim.results.stored import Stored


@dataclass(frozen=True)
class Leaps:
    """The leaps of one run, replica after replica, those of each in order of time.

    Their steps are numbered through in that order: leap i has the steps ``first_step[i]`` up to
    ``first_step[i + 1]``, of which the j-th lasts ``first_s[i] + j x increment_s[i]`` seconds. Only
    steps that give decoding sequences a token count: a step of prompts alone is a leap without any. Of the
    sequences of leap i, ``stalled[i]`` have waited for such steps before it.
    """

    replica: NDArray[Any]
    start_s: Floats
    first_s: Floats
    increment_s: Floats
    steps: Integers
    stalled: Integers

    @classmethod
    def of(cls, table: Stored) -> Leaps:
        """Return the leaps of a table of steps."""
        names = ("replica", "start_s", "first_step_s", "increment_s", "steps", "stalled", "decodes")
        replica, *columns, decodes = (table.column(name) for name in names)
        columns[-2] = np.where(decodes > 0, columns[-2], 0)
        order = np.argsort(replica, kind="stable")
        return cls(replica[order], *(column[order] for column in columns))

    def __len__(self) -> int:
        """Return how many leaps there are."""
        return len(self.replica)

    @cached_property
    def first_step(self) -> Integers:
        """The number of the first step of each leap, and behind the last leap the number of all steps."""
        return np.concatenate([[0], np.cumsum(self.steps, dtype=np.int64)])

    @cached_property
    def end_s(self) -> Floats:
        """When the last step of each leap ends; one that gives no token has one step."""
        return self._end_of(np.arange(len(self)), np.maximum(self.steps, 1))

    @cached_property
    def stalls_s(self) -> Floats:
        """How long the sequences of each leap have waited before it that got a token in the one before."""
        places = np.arange(len(self))
        giving = np.maximum.accumulate(np.where(self.steps > 0, places, -1))
        before = np.append(-1, giving)[:-1]
        return np.where(self.stalled > 0, self.start_s - self.end_s[before], 0.0)

    def durations_s(self, steps: Integers) -> Floats:
        """Return how long the steps with these numbers last, in seconds."""
        leap = self.leap_of(steps)
        durations: Floats = self.first_s[leap] + (steps - self.first_step[leap]) * self.increment_s[leap]
        return durations

    def ends_s(self, steps: Integers) -> Floats:
        """Return when the steps with these numbers end."""
        leap = self.leap_of(steps)
        return self._end_of(leap, steps - self.first_step[leap] + 1)

    def ended_by(self, replica: NDArray[Any], time_s: Floats) -> Integers:
        """Return how many leaps lie before that boundary of a replica which is nearest to each time.

        Times of a table are differences of those of the clock, so they are off by a rounding; no two
        boundaries of a replica are that close. Before the first leap of a replica there is no boundary.
        """
        nearest = np.zeros(len(time_s), dtype=np.int64)
        for index in np.unique(replica):
            of_replica = replica == index
            begin, end = np.searchsorted(self.replica, (index, index + 1))
            nearest[of_replica] = begin + _nearest(self.end_s[begin:end], time_s[of_replica])
        return nearest

    def leap_of(self, steps: Integers) -> Integers:
        """Return the leaps of the steps with these numbers."""
        return np.searchsorted(self.first_step, steps, side="right") - 1

    def _end_of(self, leap: Integers, steps: Integers) -> Floats:
        """Return when the first ``steps`` steps of a leap have ended, with the engine's own formula."""
        spread_s = self.increment_s[leap] * (steps * (steps - 1) * 0.5)
        ends: Floats = self.start_s[leap] + (steps * self.first_s[leap] + spread_s)
        return ends


def _nearest(ends_s: Floats, time_s: Floats) -> Integers:
    """Return 1 + the index of the end that is nearest to each time; 0 where there are no ends."""
    if not len(ends_s):
        return np.zeros(len(time_s), dtype=np.int64)
    middles = (ends_s[1:] + ends_s[:-1]) / 2
    return np.searchsorted(middles, time_s) + 1
