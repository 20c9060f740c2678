"""servesim simulates LLM serving on GPU clusters: latency, throughput and cost under your traffic.

    import servesim

    result = servesim.run(servesim.load("scheduler=disaggregated", "workload.arrivals.rate_rps=6"))
    print(result.summary["latency"]["ttft_s"]["p99"])

What is named here is imported on first use, so that ``import servesim`` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from servesim.check import ConfigError
    from servesim.config.loading import load
    from servesim.results.result import Result
    from servesim.scenario import Scenario
    from servesim.simulation import run
    from servesim.sweeps.sweep import sweep

__version__ = "0.1.0"

__all__ = ["load", "run", "sweep", "Scenario", "Result", "ConfigError", "__version__"]

_HOMES = {
    "load": "servesim.config.loading",
    "run": "servesim.simulation",
    "sweep": "servesim.sweeps.sweep",
    "Scenario": "servesim.scenario",
    "Result": "servesim.results.result",
    "ConfigError": "servesim.check",
}


def __getattr__(name: str) -> Any:
    """Import a public name from its module when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'servesim' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, imported yet or not."""
    return sorted({*globals(), *__all__})
