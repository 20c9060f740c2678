"""A queue in the order of a key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush

from servesim.workload.request import Request


class SortedQueue:
    """Waiting requests, the least key first: a heap.

    Of equal keys the first to arrive comes first, and one that was preempted before all that arrived: so
    where all keys are equal this is a deque. A key is asked for once, when a request comes.
    """

    __slots__ = ("_arrivals", "_heap", "_key", "_returns")

    def __init__(self, key: Callable[[Request], float]) -> None:
        self._key = key
        self._heap: list[tuple[float, int, Request]] = []
        self._arrivals = self._returns = 0

    def append(self, request: Request) -> None:
        """Take an arrival in."""
        self._arrivals += 1
        heappush(self._heap, (self._key(request), self._arrivals, request))

    def appendleft(self, request: Request) -> None:
        """Take a preempted request back."""
        self._returns -= 1
        heappush(self._heap, (self._key(request), self._returns, request))

    def popleft(self) -> Request:
        """Remove and return the head."""
        return heappop(self._heap)[-1]

    def remove(self, request: Request) -> None:
        """Remove a request, wherever it stands."""
        place = next(place for place, entry in enumerate(self._heap) if entry[-1] is request)
        self._heap[place] = self._heap[-1]
        self._heap.pop()
        heapify(self._heap)

    def __getitem__(self, place: int) -> Request:
        """Return the request at a place; the head costs nothing."""
        return self._heap[0][-1] if place == 0 else sorted(self._heap)[place][-1]

    def __len__(self) -> int:
        """Return how many requests wait."""
        return len(self._heap)

    def __iter__(self) -> Iterator[Request]:
        """Yield the requests in order."""
        return (entry[-1] for entry in sorted(self._heap))
