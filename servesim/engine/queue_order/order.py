"""What a queue order is, and the plain one: first come, first served.

A queue order is a plain dataclass. For each replica it makes three things, between which it may share what
it has to know: the queue of waiting requests, the set of running ones, and the decoding sequences.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

from servesim.engine.decodes import Decodes
from servesim.workload.request import Request


class Queue(Protocol):
    """What the engine asks of the queue of waiting requests: it is a deque, as far as it goes.

    ``append`` is an arrival, ``appendleft`` a request that was preempted and comes back, ``queue[0]`` the
    next one to try.
    """

    def append(self, request: Request, /) -> None: ...  # noqa: D102

    def appendleft(self, request: Request, /) -> None: ...  # noqa: D102

    def popleft(self) -> Request: ...  # noqa: D102

    def remove(self, request: Request, /) -> None: ...  # noqa: D102

    def __getitem__(self, place: int, /) -> Request: ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Request]: ...


class Books(NamedTuple):
    """The requests of one replica.

    Attributes:
        waiting: the queue.
        running: the running requests, an ordered set; ``popitem`` takes out the one to be preempted.
        decodes: those of them that decode.
    """

    waiting: Queue
    running: dict[Request, None]
    decodes: Decodes


@dataclass(frozen=True)
class QueueOrder:
    """Which waiting request a replica tries next, and which running one it preempts.

    Whoever is tried next and cannot be admitted holds back all behind it, as in vLLM: no request is passed
    over for being large. When KV blocks are short, the last running request is preempted.

    Attributes:
        in_turn: whether of those preempted the last one is always scheduled first.
    """

    in_turn: ClassVar[bool] = False

    def start(self, block_size: int) -> Books:
        """Return the empty books of a replica."""
        return Books(deque(), {}, Decodes(block_size))


@dataclass(frozen=True)
class Fcfs(QueueOrder):
    """First come, first served; a preempted request comes back to the head."""

    in_turn: ClassVar[bool] = True
