"""Routers that look at the load of the replicas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from servesim.check import quantity
from servesim.cluster.pools import MOST_REPLICAS
from servesim.cluster.router.informed import Informed, least_outstanding
from servesim.cluster.router.protocol import Pick
from servesim.cluster.view import PoolView

#: Picks for which replicas are drawn at a time.
_BLOCK = 256


@dataclass(frozen=True)
class LeastOutstanding(Informed):
    """The replica with the fewest requests running and waiting; the first of those that tie."""

    def begin(self, view: PoolView, rng: np.random.Generator) -> Pick:
        """Return a function that looks for the least count."""
        return least_outstanding(view)


@dataclass(frozen=True)
class PowerOfTwo(Informed):
    """The least loaded of ``choices`` different replicas drawn at random; the first drawn of those that tie.

    Already two choices leave hardly a long queue (Azar et al., STOC 1994; Mitzenmacher, IEEE TPDS 12(10),
    2001), and unlike the least loaded of all they do not send everybody to the same replica when many
    routers look at the same counts, or at late ones.
    """

    choices: int = quantity("replicas", at_least=1, at_most=MOST_REPLICAS, default=2)

    def begin(self, view: PoolView, rng: np.random.Generator) -> Pick:
        """Return a function that draws, and compares what it has drawn."""
        outstanding = view.outstanding
        draw = _draws(view.replicas, min(self.choices, view.replicas), rng)
        return lambda request: min(draw(), key=outstanding.__getitem__)


@dataclass(frozen=True)
class LeastKv(Informed):
    """The replica whose requests hold the fewest KV blocks; of those that tie, the one with fewer requests.

    Requests that wait hold no blocks yet: only running ones count, by the length of their context.
    """

    def begin(self, view: PoolView, rng: np.random.Generator) -> Pick:
        """Return a function that looks for the emptiest cache."""
        outstanding, kv_used, everyone = view.outstanding, view.kv_used, range(view.replicas)

        def held(index: int) -> tuple[int, int]:
            return kv_used(index), outstanding[index]

        return lambda request: min(everyone, key=held)


def _draws(replicas: int, choices: int, rng: np.random.Generator) -> Callable[[], list[int]]:
    """Return a function that draws different replicas, in any order with equal chances.

    The j-th draw takes one of the places j and beyond, and what stands in place j moves there (the shuffle
    of Fisher and Yates, for as many places as are drawn); what has moved is all that is written down.
    """
    left = replicas - np.arange(choices)
    drawn: list[list[int]] = []

    def draw() -> list[int]:
        if not drawn:
            drawn.extend((rng.integers(left, size=(_BLOCK, choices)) + np.arange(choices)).tolist())
        places = drawn.pop()
        moved: dict[int, int] = {}
        for first, place in enumerate(places):
            places[first] = moved.get(place, place)
            moved[place] = moved.get(first, first)
        return places

    return draw
