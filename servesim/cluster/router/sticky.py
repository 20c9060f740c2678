"""The router that keeps conversations where they are."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import numpy as np

from servesim.check import quantity
from servesim.cluster.router.informed import Informed, least_outstanding
from servesim.cluster.router.protocol import Pick
from servesim.cluster.view import PoolView
from servesim.workload.batch import MOST_REQUESTS
from servesim.workload.request import Request


@dataclass(frozen=True)
class SessionSticky(Informed):
    """All requests of a session to one replica: the one with the fewest outstanding when it began.

    A session moves to the least loaded replica when its own has more than ``max_imbalance`` requests more
    outstanding. Of sessions that have long been silent it is forgotten where they were: ``remembers`` of
    them are kept in mind. Requests without a session go to the replica with the fewest outstanding.
    """

    max_imbalance: int | None = quantity("requests", at_least=0, at_most=MOST_REQUESTS, default=None)
    remembers: int = quantity("sessions", at_least=1, at_most=MOST_REQUESTS, default=100_000)

    def begin(self, view: PoolView, rng: np.random.Generator) -> Pick:
        """Return a function that remembers where each session is."""
        outstanding, most, remembers = view.outstanding, self.max_imbalance, self.remembers
        least = least_outstanding(view)
        homes: OrderedDict[int, int] = OrderedDict()

        def pick(request: Request) -> int:
            session = request.origin.session
            if session < 0:
                return least(request)
            home = homes.pop(session, None)
            if home is None or (most is not None and outstanding[home] - min(outstanding) > most):
                home = least(request)
            homes[session] = home
            if len(homes) > remembers:
                homes.popitem(last=False)
            return home

        return pick
