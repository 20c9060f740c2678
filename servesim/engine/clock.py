"""Event time: simpy's environment, with alarms at absolute times and a leaner loop."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from math import inf
from typing import cast

from simpy import Environment, Event

#: At one instant arrivals come before step boundaries.
ARRIVAL, BOUNDARY = 1, 2

#: An arrival is seen this much early, so that rounding never decides on which side of a boundary it falls.
EARLY_S = 1e-7


class StalledError(RuntimeError):
    """Simulated time cannot make progress any more, though there is work left."""


class Alarm:
    """A function to be called at one or more absolute times: an event without anyone to wait for it."""

    __slots__ = ("ring",)

    def __init__(self, ring: Callable[[], object]) -> None:
        self.ring = ring


class Clock(Environment):
    """A simpy environment that also rings alarms.

    Alarms stand in simpy's own queue beside the events of ordinary processes. They are set at absolute
    times, since simpy's ``schedule`` takes a delay and now + (time - now) can be an ulp off, so that
    simultaneous events would fall apart; and ringing one costs a third of a simpy event.
    """

    #: the simulated time in seconds; a plain attribute, as it is read several times per event
    now: float = 0.0

    def __init__(self) -> None:
        super().__init__()
        self._agenda = cast("list[tuple[float, int, int, Alarm | Event]]", self._queue)

    def set(self, alarm: Alarm, time_s: float, priority: int) -> None:
        """Let an alarm ring at ``time_s``; one alarm may be set for many times at once."""
        heappush(self._agenda, (time_s, priority, next(self._eid), alarm))

    def call_at(self, time_s: float, function: Callable[[], object]) -> None:
        """Call a function at ``time_s``, with the arrivals of that instant."""
        self.set(Alarm(function), time_s, ARRIVAL)

    def run_until(self, horizon_s: float = inf) -> int:
        """Let everything up to and including ``horizon_s`` happen; return how many things it was."""
        agenda, happened = self._agenda, 0
        while agenda and agenda[0][0] <= horizon_s:
            time_s, _, _, event = heappop(agenda)
            self.now = self._now = time_s
            happened += 1
            if isinstance(event, Alarm):
                event.ring()
            else:
                _happen(event)
        return happened


def _happen(event: Event) -> None:
    """Process an event of simpy's own, as ``Environment.step`` does."""
    callbacks, event.callbacks = event.callbacks, []
    for callback in callbacks:
        callback(event)
    if not event._ok and not hasattr(event, "_defused"):
        raise event._value
