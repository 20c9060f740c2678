"""The stretch of simulated time that a summary speaks of."""

from __future__ import annotations

from math import nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from servesim.engine.log import QUEUED, RUNNING
from servesim.results.records import Records

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Window(NamedTuple):
    """A stretch of simulated time, in seconds; both ends are NaN where nothing was sent."""

    start_s: float
    end_s: float

    @property
    def length_s(self) -> float:
        """How long it is, in seconds."""
        return self.end_s - self.start_s

    def sends(self, times_s: Floats) -> Mask:
        """Say which requests, sent at these times, were sent in the window, both ends included."""
        return (times_s >= self.start_s) & (times_s <= self.end_s)

    def sees(self, times_s: Floats) -> Mask:
        """Say which tokens, emitted at these times, are the window's: not those of its very start."""
        return (times_s > self.start_s) & (times_s <= self.end_s)

    def overlap_s(self, starts_s: Floats, ends_s: Floats) -> Floats:
        """Return how much of each interval lies in the window, in seconds."""
        inside = np.minimum(ends_s, self.end_s) - np.maximum(starts_s, self.start_s)
        positive: Floats = np.maximum(inside, 0.0)
        return positive

    def quarter(self, number: int) -> Window:
        """Return one quarter of the window, the first being number 0."""
        step_s = self.length_s / 4
        return Window(self.start_s + number * step_s, self.start_s + (number + 1) * step_s)


NOTHING = Window(nan, nan)


def span(records: Records, horizon_s: float | None) -> Window:
    """Return the run's own window: from the first send to the last response, or refusal, or hanging up.

    A run that was cut at the horizon with requests left in it lasted until the horizon.
    """
    sent_s = records.request_table.column("sent_s")
    if not len(sent_s):
        return NOTHING
    if was_cut(records) and horizon_s is not None:
        return Window(float(sent_s.min()), horizon_s)
    responded_s = np.fmax(records.request_table.column("ended_s"), sent_s)
    return Window(float(sent_s.min()), float(responded_s.max()))


def was_cut(records: Records) -> bool:
    """Say whether the run ended with requests in the system."""
    return bool(left_over(records).any())


def left_over(records: Records) -> Mask:
    """Say which requests were still in the system when the run ended."""
    left: Mask = np.isin(records.request_table.column("status"), (RUNNING, QUEUED))
    return left
