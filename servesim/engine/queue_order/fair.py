"""The order of tenants: whoever has been served least comes next."""

from __future__ import annotations

from dataclasses import dataclass

from servesim.check import MOST_FACTOR, quantity
from servesim.engine.queue_order.fair_queue import FairQueue
from servesim.engine.queue_order.order import Books, QueueOrder


@dataclass(frozen=True)
class Fair(QueueOrder):
    """The tenant that has been served least comes next, of its requests the first to arrive.

    The virtual token counter of Sheng et al., "Fairness in Serving Large Language Models", OSDI 2024: a
    tenant's counter is the service it has had, ``input_weight`` for each token of a prompt that was admitted
    and ``output_weight`` for each token emitted, over the tenant's
    weight. A tenant that had nothing in
    the queue and comes back is lifted to the least counter of those that have, so that nobody saves up
    service while away; where nobody waits, to the counter of the last that did.

    A prompt is charged when it is first admitted, and the token that ends a prefill or a recompute with it;
    every further token when it is emitted, so that nobody has to know an output's length beforehand. Each
    replica counts for itself.
    """

    input_weight: float = quantity("per token", at_least=0, at_most=MOST_FACTOR, default=1.0)
    output_weight: float = quantity("per token", at_least=0, at_most=MOST_FACTOR, default=2.0)

    def start(self, block_size: int) -> Books:
        """Return the empty books of a replica."""
        queue = FairQueue(self.input_weight, self.output_weight, block_size)
        return Books(queue, {}, queue.decodes)
