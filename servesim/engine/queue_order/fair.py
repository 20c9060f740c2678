"""The order of tenants: whoever has been served least comes next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from servesim.check import LEAST_FACTOR, MOST_FACTOR, Problem, quantity
from servesim.engine.queue_order.fair_queue import FairQueue
from servesim.engine.queue_order.order import Books, QueueOrder


@dataclass(frozen=True)
class Fair(QueueOrder):
    """The tenant that has been served least comes next, of its requests the first to arrive.

    The virtual token counter of Sheng et al., "Fairness in Serving Large Language Models", OSDI 2024: a
    tenant's counter is the service it has had, ``input_weight`` for each token of a prompt that was admitted
    and ``output_weight`` for each token emitted, over the tenant's own weight. A tenant that had nothing in
    the queue and comes back is lifted to the least counter of those that have, so that nobody saves up
    service while away; where nobody waits, to the counter of the last that did.

    A prompt is charged when it is first admitted, and the token that ends a prefill or a recompute with it;
    every further token when it is emitted, so that nobody has to know an output's length beforehand. Each
    replica counts for itself.

    Attributes:
        weights: the share that each tenant is to have, by its number; those beyond the list have 1.
    """

    input_weight: float = quantity("per token", at_least=0, at_most=MOST_FACTOR, default=1.0)
    output_weight: float = quantity("per token", at_least=0, at_most=MOST_FACTOR, default=2.0)
    weights: tuple[float, ...] = quantity("of each tenant", default=())

    def problems(self) -> Iterator[Problem]:
        """Yield the weights that are out of bounds."""
        for tenant, weight in enumerate(self.weights):
            if not LEAST_FACTOR <= weight <= MOST_FACTOR:
                message = f"must be at least {LEAST_FACTOR:g} and at most {MOST_FACTOR:g}"
                yield Problem(f"weights[{tenant}]", weight, message)

    def start(self, block_size: int) -> Books:
        """Return the empty books of a replica."""
        queue = FairQueue(self.rates, block_size)
        return Books(queue, {}, queue.decodes)

    def rates(self, tenant: int) -> tuple[float, float]:
        """Return by how much a token in and a token out raise the counter of a tenant."""
        weight = self.weights[tenant] if 0 <= tenant < len(self.weights) else 1.0
        return self.input_weight / weight, self.output_weight / weight
