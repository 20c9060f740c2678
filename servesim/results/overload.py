"""Whether a cluster lost load that it could not serve."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from servesim.results.rates import ratio

#: Reasons for which requests are turned away that the cluster could have served, had it been free.
REJECTED = ("queue_full", "slo")
#: Share of the requests from which on their loss counts, and of E2E from which on a wait is long.
MANY_LOST, LONG = 0.01, 0.1


def rejected(accounting: Mapping[str, Any]) -> int:
    """Return how many requests admission control turned away."""
    return sum(accounting["dropped"].get(reason, 0) for reason in REJECTED)


def loses_many(accounting: Mapping[str, Any]) -> bool:
    """Say whether more than 1% of the requests timed out or were turned away."""
    lost: int = accounting["timed_out"] + rejected(accounting)
    injected: int = accounting["injected"]
    return lost > MANY_LOST * injected


def overloaded(accounting: Mapping[str, Any], breakdown_s: Mapping[str, float | None]) -> bool:
    """Say whether load was lost for want of room: a queue that is cut so need not grow.

    More than 1% of the requests were lost, and some were turned away, or those that completed waited for more
    than a tenth of their time: then others gave up because of the load, not for want of patience alone.
    """
    if not loses_many(accounting):
        return False
    spent = {name: part or 0.0 for name, part in breakdown_s.items()}
    waited = spent["queue"] + spent["preempted"] + spent["decode_queue"]
    return rejected(accounting) > 0 or ratio(waited, sum(spent.values())) > LONG
