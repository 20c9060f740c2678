"""A replica in event time: an engine, and the alarm that rings at its next boundary."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from servesim.engine.clock import BOUNDARY, Alarm, Clock
from servesim.workload.request import Request


class Engine(Protocol):
    """What a replica asks of an engine; the times returned are those of its next boundary."""

    def submit(self, request: Request, now: float) -> float | None:
        """Queue a request; return when the next boundary should be at the latest, if that is to change."""

    def boundary(self, now: float) -> float | None:
        """Settle the steps that end now, plan those that follow; return when they end, or None when idle."""

    def abort(self, request: Request, now: float) -> float | None:
        """Give a request up that is here; return when the next boundary should be at the latest.

        Its ``generated`` is the number of tokens emitted by now. It takes part in the step under way, and
        holds its blocks until that ends.
        """

    def halt(self, now: float) -> None:
        """Stop for good: settle the steps that have ended by now and forget the one under way."""

    def kv_used(self, now: float) -> int:
        """Return the KV blocks that requests hold now."""

    def cached_tokens_of(self, request: Request, now: float) -> int:
        """Return the tokens of a request's prompt whose KV it would find in the cache."""


E = TypeVar("E", bound=Engine)


class Replica(Generic[E]):
    """Drives one engine: about one alarm per scheduling event, never one per token."""

    __slots__ = ("_alarm", "_clock", "_due_s", "engine")

    def __init__(self, clock: Clock, engine: E) -> None:
        self.engine = engine
        self._clock = clock
        self._alarm = Alarm(self._ring)
        self._due_s: float | None = None

    def submit(self, request: Request) -> None:
        """Hand a request to the engine."""
        due_s = self.engine.submit(request, self._clock.now)
        if due_s is not None:
            self.wake_by(due_s)

    def abort(self, request: Request) -> None:
        """Let the engine give up a request."""
        self.wake_by(self.engine.abort(request, self._clock.now))

    def wake_by(self, time_s: float | None) -> None:
        """Bring the next boundary forward to ``time_s``, if given; what was set before rings in vain."""
        if time_s is not None and (self._due_s is None or time_s < self._due_s):
            self._due_s = time_s
            self._clock.set(self._alarm, time_s, BOUNDARY)

    def _ring(self) -> None:
        clock = self._clock
        if clock.now == self._due_s:
            self._due_s = due_s = self.engine.boundary(clock.now)
            if due_s is not None:
                clock.set(self._alarm, due_s, BOUNDARY)
