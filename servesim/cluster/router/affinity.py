"""Routers that send a prompt to where much of it is cached, unless that replica is busy.

The replica with the least cost gets the request; for replica i

    cost_i = input - cached_i + tokens_per_outstanding x outstanding_i

``input`` being the tokens of the prompt, ``cached_i`` those of them that the replica need not compute, and
``outstanding_i`` its requests running and waiting: so a request ahead counts as much as so many tokens of
prefill. NVIDIA Dynamo's KV router weighs blocks to prefill against blocks in use in the same way
(docs.nvidia.com/dynamo, Router Guide); llm-d adds up weighted scores of prefix, queue and KV (Gateway API
Inference Extension, pkg/epp/scheduling); SGLang's follows the prefix as long as the load is balanced within
thresholds (sgl-router, ``--balance-abs-threshold``, ``--balance-rel-threshold``).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import inf

import numpy as np

from servesim.check import quantity
from servesim.cluster.router.informed import Informed, least_outstanding
from servesim.cluster.router.memory import SentPrompts
from servesim.cluster.router.protocol import Pick
from servesim.cluster.view import PoolView
from servesim.workload.batch import MOST_REQUESTS
from servesim.workload.lengths import MOST_TOKENS
from servesim.workload.request import Request

#: Tokens of a request's prompt that the replica with an index has, or is believed to have, in its cache.
Cached = Callable[[int, Request], int]


@dataclass(frozen=True)
class Affinity(Informed):
    """What the two routers have in common: the price of a request ahead.

    With 0 only the prefix counts; with more than a prompt's length, the outstanding requests come first.
    Replicas with more than ``max_imbalance`` requests more than the least loaded one are left out. Where two
    cost the same, the one with fewer outstanding gets the request; where no replica reuses prefixes, the one
    with the fewest.
    """

    tokens_per_outstanding: float = quantity("tokens", at_least=0, at_most=MOST_TOKENS, default=1024.0)
    max_imbalance: int | None = quantity("requests", at_least=0, at_most=MOST_REQUESTS, default=None)

    def begin(self, view: PoolView, rng: np.random.Generator) -> Pick:
        """Return a function that looks for the least cost."""
        return self.follow(view) if view.reuses_prefixes else least_outstanding(view)

    @abstractmethod
    def follow(self, view: PoolView) -> Pick:
        """Return a function that looks for the least cost in a pool that reuses prefixes."""

    def cheapest(self, view: PoolView, cached: Cached) -> Pick:
        """Return a function that looks for the least cost, given what is cached where."""
        outstanding, price, everyone = view.outstanding, self.tokens_per_outstanding, range(view.replicas)
        margin = inf if self.max_imbalance is None else self.max_imbalance

        def pick(request: Request) -> int:
            most = min(outstanding) + margin

            def cost(index: int) -> tuple[float, int]:
                ahead = outstanding[index]
                return price * ahead - cached(index, request) if ahead <= most else inf, ahead

            return min(everyone, key=cost)

        return pick


@dataclass(frozen=True)
class PrefixAffinity(Affinity):
    """Least cost by what it remembers itself: the prompts that it has sent to each replica.

    It asks no engine, and so does not know what has been evicted; it remembers the latest ``remembers``
    tokens that it has sent to each, prompts but not answers. So do SGLang's cache-aware router, the
    prefix-aware one of vLLM's production stack (src/vllm_router/routers/routing_logic.py), and the prefix
    scorer of the Gateway API Inference Extension, whose 31,250 blocks of 16 tokens are the default here.
    """

    remembers: int = quantity("tokens per replica", at_least=1, at_most=10**12, default=500_000)

    def follow(self, view: PoolView) -> Pick:
        """Return a function that looks for the least cost, and remembers what it sends."""
        sent = [SentPrompts(self.remembers) for _ in range(view.replicas)]
        cheapest = self.cheapest(view, lambda index, request: sent[index].matched(request))

        def pick(request: Request) -> int:
            index = cheapest(request)
            sent[index].note(request)
            return index

        return pick


@dataclass(frozen=True)
class KvAware(Affinity):
    """Least cost by what the replicas' caches hold, as engines report by their KV events."""

    def follow(self, view: PoolView) -> Pick:
        """Return a function that looks for the least cost."""
        return self.cheapest(view, view.cached_tokens)
