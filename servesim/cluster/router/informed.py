"""What routers have in common that look at their pool."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from servesim.check import MOST_S, quantity
from servesim.cluster.router.protocol import Pick
from servesim.cluster.view import LateView, PoolView
from servesim.workload.request import Request


@dataclass(frozen=True, kw_only=True)
class Informed(ABC):
    """A router that looks at its pool, and sees it as it was ``delay_s`` ago.

    A router that counts its own requests knows at once; one that reads the engines' metrics, or stands
    beside others, knows late. What it learns late is all that the pool shows, its own sendings included; whom
    old counts show as the least loaded is then trampled on (Mitzenmacher, How Useful Is Old Information?,
    IEEE TPDS 11(1), 2000).
    """

    delay_s: float = quantity("s", at_least=0, at_most=MOST_S, default=0.0)

    def start(self, view: PoolView, rng: np.random.Generator) -> Pick:
        """Return the function that picks a replica."""
        if not self.delay_s:
            return self.begin(view, rng)
        late = LateView(view, self.delay_s)
        pick = self.begin(late, rng)

        def pick_late(request: Request) -> int:
            late.catch_up()
            return pick(request)

        return pick_late

    @abstractmethod
    def begin(self, view: PoolView, rng: np.random.Generator) -> Pick:
        """Return the function that picks by what the view shows."""


def least_outstanding(view: PoolView) -> Pick:
    """Return a function that looks for the least count, the first of those that tie."""
    outstanding = view.outstanding
    return lambda request: outstanding.index(min(outstanding))
