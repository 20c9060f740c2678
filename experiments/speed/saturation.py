"""Find what a setting can deliver at most: its throughput when all requests are there from the start."""

from __future__ import annotations

import servesim
from experiments.speed.child import answer


def saturation(settings: list[list[str]], requests: int) -> list[float]:
    """Return the requests per second that each of some overloaded scenarios completes."""
    return [_throughput(overrides, requests) for overrides in settings]


def _throughput(overrides: list[str], requests: int) -> float:
    result = servesim.run(servesim.load(*overrides, f"workload.requests={requests}"))
    return float(result.summary["throughput"]["requests_per_s"])


if __name__ == "__main__":
    answer(saturation)
