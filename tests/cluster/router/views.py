"""A pool that exists only as what a router sees of it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from servesim.cluster.router import Pick, Router
from servesim.cluster.view import Change
from servesim.streams import Streams
from servesim.workload.origin import ANYWHERE, Origin
from servesim.workload.request import Request


@dataclass
class Pool:
    """Counts, blocks and caches as a test sets them."""

    outstanding: list[int]
    used: list[int] = field(default_factory=list)
    cached: list[int] = field(default_factory=list)
    reuses_prefixes: bool = True
    kv_blocks: int = 1000
    now: float = 0.0
    kept: list[deque[Change]] = field(default_factory=list)

    @property
    def replicas(self) -> int:
        return len(self.outstanding)

    def kv_used(self, index: int) -> int:
        return self.used[index]

    def cached_tokens(self, index: int, request: Request) -> int:
        return self.cached[index]

    def keep_changes(self) -> deque[Change]:
        self.kept.append(deque())
        return self.kept[-1]

    def count(self, index: int, change: int = 1) -> None:
        """Let a request come to a replica, or leave it."""
        self.outstanding[index] += change
        for changes in self.kept:
            changes.append((self.now, index, change))

    def start(self, router: Router, seed: int = 0) -> Pick:
        """Let a router stand before the pool; what it picks is counted."""
        pick = router.start(self, Streams(seed).stream("router"))

        def counted(request: Request) -> int:
            index = pick(request)
            self.count(index)
            return index

        return counted


def request(origin: Origin = ANYWHERE, tokens: int = 100) -> Request:
    """Return a request with a prompt of so many tokens."""
    return Request(0, 0.0, tokens, 1, origin)


def picks(router: Router, pool: Pool, number: int = 1, seed: int = 0) -> list[int]:
    """Return the replicas that a number of requests get, while the pool stays as it is."""
    pick = router.start(pool, Streams(seed).stream("router"))
    return [pick(request()) for _ in range(number)]
