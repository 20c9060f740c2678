"""What a run costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from servesim.check import MOST_FACTOR, quantity
from servesim.results.rates import ratio

if TYPE_CHECKING:
    from servesim.cluster.deployment import Deployment
    from servesim.results.throughput import Volume
    from servesim.results.window import Window


@dataclass(frozen=True)
class Pricing:
    """The price of a GPU for an hour; null: each GPU's own."""

    usd_per_gpu_hour: float | None = quantity("$/h", at_least=0, at_most=MOST_FACTOR, default=None)

    def usd_per_hour(self, deployments: Sequence[Deployment]) -> float:
        """Return what all GPUs of the cluster cost in an hour, idle or not."""
        if self.usd_per_gpu_hour is not None:
            return self.usd_per_gpu_hour * sum(pool.gpus for pool in deployments)
        return sum(pool.gpus * pool.gpu.usd_per_hour for pool in deployments)


def cost(
    pricing: Pricing, deployments: Sequence[Deployment], window: Window, delivered: Volume, good: float
) -> dict[str, float]:
    """Return the cost of the window, and of what was delivered in it; NaN for what was not."""
    hours = window.length_s / 3600
    usd = hours * pricing.usd_per_hour(deployments)
    return {
        "gpu_hours": hours * sum(pool.gpus for pool in deployments),
        "usd": usd,
        "usd_per_million_output_tokens": 1e6 * ratio(usd, delivered.output_tokens),
        "usd_per_million_total_tokens": 1e6 * ratio(usd, delivered.input_tokens + delivered.output_tokens),
        "usd_per_request": ratio(usd, delivered.requests),
        "usd_per_good_request": ratio(usd, good),
    }
