"""Event time: simpy's environment, with alarms at absolute times and a leaner loop."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from math import inf
from typing import cast

from simpy import Environment, Event

#: At one instant arrivals come before step boundaries, and these before clients lose patience.
ARRIVAL, BOUNDARY, TIME_OUT = 1, 2, 3

#: An arrival is seen this much early, so that rounding never decides on which side of a boundary it falls.
EARLY_S = 1e-7

#: Events after which time must have moved.
MANY = 10_000_000


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

    @property
    def _now(self) -> float:
        """The same, as simpy names it."""
        return self.now

    @_now.setter
    def _now(self, now: float) -> None:
        self.now = now

    def set(self, alarm: Alarm, time_s: float, priority: int) -> None:
        """Let an alarm ring at ``time_s``; one alarm may be set for many times at once."""
        heappush(self._agenda, (time_s, priority, next(self._eid), alarm))

    def call_at(self, time_s: float, function: Callable[[], object]) -> None:
        """Call a function at ``time_s``, with the arrivals of that instant."""
        self.set(Alarm(function), time_s, ARRIVAL)

    def restart(self) -> None:
        """Begin at 0 again; nothing may be pending."""
        if self._agenda:
            raise RuntimeError(f"{len(self._agenda)} events are pending at {self.now} s")
        self.now = 0.0

    def run_until(self, horizon_s: float = inf) -> int:
        """Let everything up to and including ``horizon_s`` happen; return how many things it was.

        Raises:
            StalledError: things keep happening, and time stands still.

        """
        happened = 0
        while True:
            before_s = self.now
            few = self._run_some(horizon_s)
            happened += few
            if few < MANY:
                return happened
            if self.now == before_s:
                raise StalledError(f"{MANY} events at {self.now} s, and there is no end of them")

    def _run_some(self, horizon_s: float) -> int:
        """Let at most `MANY` things happen up to the horizon; return how many it was."""
        agenda = self._agenda
        for happened in range(MANY):
            if not agenda:
                return happened
            first = heappop(agenda)
            time_s, _, _, event = first
            if time_s > horizon_s:
                heappush(agenda, first)
                return happened
            self.now = time_s
            if isinstance(event, Alarm):
                # A function that an attribute keeps is fetched before it is called: CPython 3.11 does the two
                # more quickly one after the other than as one.
                ring = event.ring
                ring()
            else:
                _happen(event)
        return MANY


def _happen(event: Event) -> None:
    """Process an event of simpy's own, as ``Environment.step`` does."""
    callbacks, event.callbacks = event.callbacks, []
    for callback in callbacks:
        callback(event)
    if not event._ok and not hasattr(event, "_defused"):
        raise event._value
