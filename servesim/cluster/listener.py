"""What clients have in common that hear of every answer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from servesim.engine.clock import EARLY_S, Clock
from servesim.workload.request import Request


class Server(Protocol):
    """What answers a client: a cluster, or what stands before it."""

    on_leave: Callable[[Request], None] | None

    def accept(self, request: Request) -> None:
        """Take a request when it arrives."""

    def note_on_its_way(self, request: Request) -> None:
        """Take note of a request that was sent and whose time to arrive does not come."""


class Listener:
    """A client that hears of every answer.

    An answer reaches it just after the instant of its last token, so that the engine has planned its next
    step by then, as a real one has.
    """

    def __init__(self, clock: Clock, cluster: Server, api_time_s: float) -> None:
        self._clock = clock
        self._cluster = cluster
        self._api_time_s = api_time_s
        self._on_their_way: dict[Request, None] = {}
        cluster.on_leave = self._answered

    def _answered(self, request: Request) -> None:
        raise NotImplementedError

    def _send(self, request: Request, sent_s: float) -> None:
        """Send a request; it is seen as early as any arrival, but not before now."""
        request.sent_s = sent_s
        request.arrived_s = sent_s + self._api_time_s
        seen_s = request.arrived_s - EARLY_S
        if seen_s > self._clock.now:
            self._on_their_way[request] = None
            self._clock.call_at(seen_s, partial(self._arrive, request))
        else:
            self._cluster.accept(request)

    def _arrive(self, request: Request) -> None:
        del self._on_their_way[request]
        self._cluster.accept(request)

    def halt(self, now: float) -> None:
        """Cut the run: whatever has been sent by now will not arrive."""
        for request in self._on_their_way:
            self._cluster.note_on_its_way(request)
        self._on_their_way.clear()
