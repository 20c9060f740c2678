"""What a cluster asks of a router."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from servesim.cluster.view import PoolView
from servesim.workload.request import Request

Pick = Callable[[Request], int]


class Router(Protocol):
    """What a cluster asks of a router."""

    def start(self, view: PoolView, rng: np.random.Generator) -> Pick:
        """Return the function that picks a replica of the pool (its index) for a request."""
        ...
