"""Routers that look at nothing."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

import numpy as np

from servesim.cluster.router.protocol import Pick
from servesim.cluster.view import PoolView
from servesim.workload.request import Request


@dataclass(frozen=True)
class RoundRobin:
    """Each replica in turn."""

    def start(self, view: PoolView, rng: np.random.Generator) -> Pick:
        """Return a function that goes round the replicas."""
        turn, replicas = count(), view.replicas
        return lambda request: next(turn) % replicas


@dataclass(frozen=True)
class Random:
    """Any replica, all equally likely, whatever their load."""

    def start(self, view: PoolView, rng: np.random.Generator) -> Pick:
        """Return a function that draws a replica; the draws are made in blocks, as that is cheaper."""
        replicas = view.replicas
        drawn: list[int] = []

        def pick(request: Request) -> int:
            if not drawn:
                drawn.extend(rng.integers(replicas, size=1024).tolist())
            return drawn.pop()

        return pick
