"""The order of classes: the better class first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from servesim.check import quantity
from servesim.engine.decodes import Decodes
from servesim.engine.queue_order.order import Books, QueueOrder
from servesim.engine.queue_order.sorted_queue import SortedQueue
from servesim.workload.request import Request


@dataclass(frozen=True)
class Priority(QueueOrder):
    """The smallest ``priority`` first, of equals the first to arrive: vLLM's scheduling policy "priority".

    When KV blocks are short, the last admitted of the worst class running is preempted. A class that is never
    idle starves those behind it.

    With ``preempt`` a waiting request for which there is no place, no block or no token left in a step throws
    running requests of worse classes out, if that makes room for it, as SGLang's priority scheduling does.
    """

    preempt: bool = quantity(default=False)

    def start(self, block_size: int) -> Books:
        """Return the empty books of a replica."""
        return Books(SortedQueue(priority), RunningByClass(), Decodes(block_size))


def priority(request: Request) -> int:
    """Return the class of a request; a smaller one is better."""
    return request.origin.priority


class RunningByClass(dict[Request, None]):
    """Running requests in order of admission, and class by class beside it.

    ``popitem`` takes out the last of the worst class, in O(classes).
    """

    def __init__(self) -> None:
        super().__init__()
        self._classes: dict[int, dict[Request, None]] = {}

    def __setitem__(self, request: Request, nothing: None) -> None:
        """Take a request in."""
        super().__setitem__(request, nothing)
        self._classes.setdefault(request.origin.priority, {})[request] = nothing

    def __delitem__(self, request: Request) -> None:
        """Let a request go."""
        super().__delitem__(request)
        members = self._classes[request.origin.priority]
        del members[request]
        if not members:
            del self._classes[request.origin.priority]

    def popitem(self) -> tuple[Request, None]:
        """Remove and return the last of the worst class."""
        request = next(reversed(self._classes[max(self._classes)]))
        del self[request]
        return request, None

    def worse_than(self, better: int) -> Iterator[Request]:
        """Yield the requests of classes worse than one, in the order in which they would be preempted."""
        for worse in sorted(self._classes, reverse=True):
            if worse <= better:
                return
            yield from reversed(self._classes[worse])
