"""Clients: who sends the requests to the cluster, and when.

A request is *due* when nothing but the client itself could still hold it back, is *sent* when it leaves it,
and *arrives* at the cluster ``api_time_s`` later: what HTTP and the API server take before the router.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol

from servesim.cluster.listener import Listener, Server
from servesim.engine.clock import ARRIVAL, EARLY_S, Alarm, Clock
from servesim.workload import arrivals
from servesim.workload.batch import Batch
from servesim.workload.request import Request

#: Requests between two pauses.
PAUSE_REQUESTS = 1024

Pause = Callable[[int], None]


class Sink(Protocol):
    """What requests are handed to when their time has come."""

    def accept(self, request: Request) -> None:
        """Take a request."""

    def note_on_its_way(self, request: Request) -> None:
        """Take note of a request that was sent and whose time to arrive does not come."""


class OpenLoop:
    """Sends each request at its own time, whatever the answers.

    Args:
        clock: event time.
        batches: the requests in order of sending.
        sink: where they go.
        pause: told every thousand requests how many there have been, so that the log may be flushed.
        api_time_s: seconds from the sending to the arrival.
    """

    #: when the requests were due that the client holds back
    held_due_s: tuple[float, ...] = ()

    def __init__(
        self, clock: Clock, batches: Iterator[Batch], sink: Sink, pause: Pause, api_time_s: float = 0.0
    ) -> None:
        self._clock = clock
        self._sink = sink
        self._requests = _requests(batches, pause, api_time_s)
        self._next: Request | None = next(self._requests, None)
        self._alarm = Alarm(self._send)
        if self._next is not None:
            clock.set(self._alarm, max(self._next.arrived_s - EARLY_S, clock.now), ARRIVAL)

    def _send(self) -> None:
        """Hand over all that has arrived, then wait for the next."""
        clock, request = self._clock, self._next
        while request is not None:
            seen_s = request.arrived_s - EARLY_S
            if seen_s > clock.now:
                clock.set(self._alarm, seen_s, ARRIVAL)
                break
            self._sink.accept(request)
            request = next(self._requests, None)
        self._next = request

    def halt(self, now: float) -> None:
        """Cut the run: whatever has been sent by now will not arrive."""
        request = self._next
        while request is not None and request.sent_s - EARLY_S <= now:
            self._sink.note_on_its_way(request)
            request = next(self._requests, None)
        self._next = request

    def remaining(self) -> int:
        """Count the requests whose time has not come."""
        return (self._next is not None) + sum(1 for _ in self._requests)


class Semaphore(Listener):
    """Sends each request at its own time, unless ``max_concurrency`` of them are unanswered.

    The others wait in the client, first come, first served, as behind the semaphore of
    ``vllm bench serve --max-concurrency`` (vLLM, vllm/benchmarks/serve.py, ``limited_request_func``).
    """

    def __init__(
        self,
        clock: Clock,
        batches: Iterator[Batch],
        cluster: Server,
        pause: Pause,
        max_concurrency: int,
        api_time_s: float = 0.0,
    ) -> None:
        super().__init__(clock, cluster, api_time_s)
        self._free = max_concurrency
        self._waiting: deque[Request] = deque()
        self._called: deque[Request] = deque()
        self._arrivals = OpenLoop(clock, batches, self, pause)

    def accept(self, request: Request) -> None:
        """Take a request that is due: send it, or let it wait."""
        if self._free:
            self._free -= 1
            self._send(request, request.due_s)
        else:
            self._waiting.append(request)

    def _answered(self, request: Request) -> None:
        if not self._waiting:
            self._free += 1
            return
        now, request = self._clock.now, self._waiting.popleft()
        self._called.append(request)
        self._clock.call_at(now + EARLY_S, partial(self._call, max(now, request.due_s)))

    def _call(self, sent_s: float) -> None:
        """Send the request that was called first."""
        self._send(self._called.popleft(), sent_s)

    @property
    def held_due_s(self) -> tuple[float, ...]:
        """When the requests were due that are held back, in that order."""
        return tuple(request.due_s for request in (*self._called, *self._waiting))

    def note_on_its_way(self, request: Request) -> None:
        """Nothing is on its way to the client itself."""
        raise AssertionError(f"request {request.id} is due, and did not come to the client")

    def remaining(self) -> int:
        """Count the requests that are not due yet."""
        return self._arrivals.remaining()


class ClosedLoop(Listener):
    """Users, each of whom sends the next request some time after the answer to the last is complete.

    Requests are numbered as they are sent. The time that a user thinks over an answer is drawn with the
    request, so that it is the same whatever the order of the answers.

    Args:
        clock: event time.
        batches: the requests, whose moments do not count.
        cluster: where they go.
        pause: told every thousand requests how many there have been.
        users: how many they are, when they begin, and how long they think.
        thoughts_s: the seconds that a user thinks over each request's answer, in order of sending.
        duration_s: when they stop sending.
        api_time_s: seconds from the sending to the arrival.
        counted: whether somebody has said how many the requests are.
    """

    held_due_s: tuple[float, ...] = ()

    def __init__(
        self,
        clock: Clock,
        batches: Iterator[Batch],
        cluster: Server,
        pause: Pause,
        users: arrivals.ClosedLoop,
        thoughts_s: Iterator[float],
        duration_s: float | None = None,
        api_time_s: float = 0.0,
        counted: bool = True,
    ) -> None:
        super().__init__(clock, cluster, api_time_s)
        self._requests = _requests(batches, pause)
        self._counted = counted and duration_s is None
        self._duration_s = duration_s
        self._users = users
        self._begun = 0
        self._alarm = Alarm(self._begin)
        self._thoughts_s = thoughts_s
        self._thinks_s: dict[Request, float] = {}
        clock.set(self._alarm, clock.now, ARRIVAL)

    def _begin(self) -> None:
        """Let all users begin whose time has come, then wait for the next, while anything is left."""
        while self._begun < self._users.concurrency:
            start_s = self._users.start_s(self._begun)
            if start_s - EARLY_S > self._clock.now:
                self._clock.set(self._alarm, start_s - EARLY_S, ARRIVAL)
                return
            self._begun += 1
            if not self._next(start_s):
                return

    def _answered(self, request: Request) -> None:
        now = self._clock.now
        sent_s = now + self._thinks_s.pop(request)
        self._clock.call_at(max(sent_s - EARLY_S, now + EARLY_S), partial(self._next, sent_s))

    def _next(self, sent_s: float) -> bool:
        """Send the next request, if there is one and time for it; say whether it was sent."""
        if self._duration_s is not None and sent_s >= self._duration_s:
            return False
        request = next(self._requests, None)
        if request is None:
            return False
        request.due_s = sent_s
        self._thinks_s[request] = next(self._thoughts_s)
        self._send(request, sent_s)
        return True

    def remaining(self) -> int:
        """Count the requests that have not been sent.

        0 where a duration ends the sending, or where nobody said how many: who would have been answered by
        when is not known.
        """
        return sum(1 for _ in self._requests) if self._counted else 0


def _requests(batches: Iterator[Batch], pause: Pause, api_time_s: float = 0.0) -> Iterator[Request]:
    """Number the rows and turn them into requests, which arrive ``api_time_s`` after they are due."""
    index = 0
    for batch in batches:
        for start in range(0, batch.size, PAUSE_REQUESTS):
            pause(index)
            some = batch.rows(start, start + PAUSE_REQUESTS)
            for due_s, input_tokens, output_tokens, origin in some.each():
                request = Request(index, due_s, input_tokens, output_tokens, origin)
                index += 1
                if api_time_s:
                    request.arrived_s += api_time_s
                yield request
