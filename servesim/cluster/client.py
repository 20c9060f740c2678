"""Clients: who sends the requests into the cluster, and when."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from servesim.cluster.cluster import Cluster
from servesim.engine.clock import ARRIVAL, EARLY_S, Alarm, Clock
from servesim.workload.batch import Batch
from servesim.workload.request import Request

#: Requests between two pauses.
PAUSE_REQUESTS = 1024


class OpenLoop:
    """Sends each request at its own time, whatever the answers.

    Args:
        clock: event time.
        batches: the requests in order of sending.
        cluster: where they go.
        pause: told every thousand requests how many there have been, so that the log may be flushed.
    """

    def __init__(
        self, clock: Clock, batches: Iterator[Batch], cluster: Cluster, pause: Callable[[int], None]
    ) -> None:
        self._clock = clock
        self._cluster = cluster
        self._requests = _requests(batches, pause)
        self._next: Request | None = next(self._requests, None)
        self._alarm = Alarm(self._send)
        if self._next is not None:
            clock.set(self._alarm, max(self._next.sent_s - EARLY_S, clock.now), ARRIVAL)

    def _send(self) -> None:
        """Send all that is due, then wait for the next."""
        clock, request = self._clock, self._next
        while request is not None:
            seen_s = request.sent_s - EARLY_S
            if seen_s > clock.now:
                clock.set(self._alarm, seen_s, ARRIVAL)
                break
            self._cluster.accept(request)
            request = next(self._requests, None)
        self._next = request

    def remaining(self) -> int:
        """Count the requests that have not been sent."""
        return (self._next is not None) + sum(1 for _ in self._requests)


class ClosedLoop:
    """A number of users, each of whom sends the next request when the answer to the last is complete.

    All start at once. A reply reaches its user just after the instant of its last token, so that the
    engine has planned its next step by then, as a real one has.
    """

    def __init__(
        self,
        clock: Clock,
        batches: Iterator[Batch],
        cluster: Cluster,
        pause: Callable[[int], None],
        concurrency: int,
        duration_s: float | None,
    ) -> None:
        self._clock = clock
        self._cluster = cluster
        self._requests = _requests(batches, pause)
        self._duration_s = duration_s
        cluster.on_leave = self._answered
        users = 0
        while users < concurrency and self._send_at(0.0, 0.0):
            users += 1

    def _answered(self, request: Request) -> None:
        now = self._clock.now
        self._send_at(now, now + EARLY_S)

    def _send_at(self, sent_s: float, seen_s: float) -> bool:
        """Send the next request, if there is one and time for it; say whether it was sent."""
        if self._duration_s is not None and sent_s >= self._duration_s:
            return False
        request = next(self._requests, None)
        if request is None:
            return False
        request.sent_s = sent_s
        self._clock.call_at(seen_s, partial(self._cluster.accept, request))
        return True

    def remaining(self) -> int:
        """Count the requests that have not been sent; none where only a duration limits them."""
        return 0 if self._duration_s is not None else sum(1 for _ in self._requests)


def _requests(batches: Iterator[Batch], pause: Callable[[int], None]) -> Iterator[Request]:
    """Number the rows and turn them into requests."""
    first = 0
    for batch in batches:
        columns = (column.tolist() for column in batch)
        for index, (sent_s, input_tokens, output_tokens) in enumerate(zip(*columns, strict=True), first):
            if index % PAUSE_REQUESTS == 0:
                pause(index)
            yield Request(index, sent_s, input_tokens, output_tokens)
        first += batch.size
