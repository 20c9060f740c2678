"""Routers: which replica of a pool gets the next request.

A router is a plain dataclass; ``start`` hands it a pool's outstanding counts (requests running and
waiting, by replica; kept current by the cluster) and a random stream of its own, and returns the function
that picks. Any object with such a method serves as a router.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Protocol

import numpy as np

from servesim.workload.request import Request

Pick = Callable[[Request], int]


class Router(Protocol):
    """What a cluster asks of a router."""

    def start(self, outstanding: list[int], rng: np.random.Generator) -> Pick:
        """Return the function that picks a replica (an index into ``outstanding``) for a request."""
        ...


@dataclass(frozen=True)
class RoundRobin:
    """Each replica in turn."""

    def start(self, outstanding: list[int], rng: np.random.Generator) -> Pick:
        """Return a function that goes round the replicas."""
        turn, replicas = count(), len(outstanding)
        return lambda request: next(turn) % replicas


@dataclass(frozen=True)
class Random:
    """Any replica, all equally likely, whatever their load."""

    def start(self, outstanding: list[int], rng: np.random.Generator) -> Pick:
        """Return a function that draws a replica; the draws are made in blocks, as that is cheaper."""
        replicas = len(outstanding)
        drawn: list[int] = []

        def pick(request: Request) -> int:
            if not drawn:
                drawn.extend(rng.integers(replicas, size=1024).tolist())
            return drawn.pop()

        return pick


@dataclass(frozen=True)
class LeastOutstanding:
    """The replica with the fewest requests running and waiting; the first of those that tie."""

    def start(self, outstanding: list[int], rng: np.random.Generator) -> Pick:
        """Return a function that looks for the least count."""
        return lambda request: outstanding.index(min(outstanding))
