"""Tenants: who requests are served for, in which class, and how soon they are wanted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf

import numpy as np

from servesim.check import LEAST_FACTOR, MOST_FACTOR, MOST_S, quantity
from servesim.streams import Streams
from servesim.workload.origin import Origin

#: Priorities reach so far to either side of 0, the usual one.
MOST_PRIORITY = 1_000_000


@dataclass(frozen=True)
class Tenant:
    """One who sends a ``share`` of the requests, relative to the shares of the others.

    A smaller ``priority`` is served first, as in vLLM, where the queue is ordered by it; ``slack_s`` is the
    time from arrival in which a first token is wanted, null: none; ``weight`` is what is due to the tenant
    where service is shared fairly, relative to the others.
    """

    share: float = quantity("share of the requests", at_least=LEAST_FACTOR, at_most=MOST_FACTOR, default=1.0)
    priority: int = quantity("class", at_least=-MOST_PRIORITY, at_most=MOST_PRIORITY, default=0)
    slack_s: float | None = quantity("s", above=0, at_most=MOST_S, default=None)
    weight: float = quantity("share of the service", at_least=LEAST_FACTOR, at_most=MOST_FACTOR, default=1.0)


#: Tenants by name; their numbers are their places.
Tenants = Mapping[str, Tenant]


def tenant_origins(tenants: Tenants) -> list[Origin]:
    """Return what is known of a request of each tenant, in order."""
    return [
        Origin(
            tenant=number,
            priority=each.priority,
            slack_s=inf if each.slack_s is None else each.slack_s,
            weight=each.weight,
        )
        for number, each in enumerate(tenants.values())
    ]


def draw_tenants(tenants: Tenants, streams: Streams) -> Callable[[int], list[int]]:
    """Return a function that draws the tenants of the next so many requests, from a stream of their own."""
    shares = np.array([tenant.share for tenant in tenants.values()])
    ends, rng = np.cumsum(shares) / shares.sum(), streams.stream("tenants")

    def draw(count: int) -> list[int]:
        places = np.searchsorted(ends, rng.random(count), side="right")
        drawn: list[int] = np.minimum(places, len(ends) - 1).tolist()
        return drawn

    return draw
