"""The replicas of one pool in event time, and the router before them."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Generic

import numpy as np

from servesim.cluster.deployment import Deployment
from servesim.cluster.router import Router
from servesim.cluster.view import CurrentView
from servesim.engine.clock import Clock
from servesim.engine.replica import E, Replica
from servesim.workload.request import Request


class Group(Generic[E]):
    """Replicas that share a router.

    Args:
        clock: event time.
        pool: the pool they make up.
        router: which replica gets a request.
        rng: the router's random stream.
        engine: builds the engine of the replica with a given global index.
        reuses_prefixes: whether its replicas may find part of a prompt in their caches.
    """

    def __init__(
        self,
        clock: Clock,
        pool: Deployment,
        router: Router,
        rng: np.random.Generator,
        engine: Callable[[int], E],
        reuses_prefixes: bool = False,
    ) -> None:
        self._clock = clock
        self.first = pool.first_replica
        self.replicas = [Replica(clock, engine(self.first + index)) for index in range(pool.replicas)]
        self._places = range(pool.replicas)
        view = CurrentView(clock, pool, self.replicas, reuses_prefixes)
        self._outstanding, self._kept = view.outstanding, view.kept
        self._pick = router.start(view, rng)

    def choose(self, request: Request) -> int:
        """Return the global index of the replica that gets a request, and count it there."""
        return self.first + self._count(request)

    def send(self, request: Request) -> int:
        """Hand a request to the replica that the router picks; return its global index."""
        index = self._count(request)
        self.replicas[index].submit(request)
        return self.first + index

    def _count(self, request: Request) -> int:
        """Let the router pick a replica, and count the request there."""
        pick = self._pick  # fetched before it is called (see the clock)
        index = pick(request)
        if type(index) is not int:
            index = self._whole(index)
        if index not in self._places:
            raise IndexError(f"the router picked replica {index!r} of {len(self.replicas)}")
        self._outstanding[index] += 1
        if self._kept:
            self._keep(index, 1)
        return index

    def _whole(self, index: object) -> int:
        """Return what a router picked as an int, where it is some other whole number (numpy's)."""
        if isinstance(index, bool) or not isinstance(index, Integral):
            last = len(self.replicas) - 1
            raise TypeError(f"the router picked {index!r}; a replica is a whole number from 0 to {last}")
        return int(index)

    def replica(self, index: int) -> Replica[E]:
        """Return the replica with a global index."""
        return self.replicas[index - self.first]

    def left(self, index: int) -> None:
        """Count one request less at the replica with a global index."""
        index -= self.first
        self._outstanding[index] -= 1
        if self._kept:
            self._keep(index, -1)

    def _keep(self, index: int, change: int) -> None:
        """Note a change for those who see it later."""
        for changes in self._kept:
            changes.append((self._clock.now, index, change))

    def abort(self, request: Request, index: int) -> None:
        """Let the replica with a global index give up a request, and count one less there."""
        self.replica(index).abort(request)
        self.left(index)

    def halt(self, now: float) -> None:
        """Stop every replica for good."""
        for replica in self.replicas:
            replica.engine.halt(now)
