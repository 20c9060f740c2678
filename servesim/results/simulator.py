"""What the simulation itself took."""

from __future__ import annotations

import resource
import sys
import time

from servesim.results.accounting import Facts
from servesim.results.rates import ratio
from servesim.results.records import Records


def simulator(records: Records, facts: Facts) -> dict[str, float]:
    """Return the cost of the run up to now: CPU seconds, events, engine steps, peak memory (bytes)."""
    cpu_s = time.process_time() - facts.cpu_started_s
    return {
        "cpu_s": cpu_s,
        "events": facts.events,
        "steps": sum(int(steps.sum()) for (steps,) in records.step_table.groups("steps")),
        "requests_per_cpu_s": ratio(facts.injected, cpu_s),
        "peak_memory_bytes": peak_memory_bytes(),
    }


def peak_memory_bytes() -> int:
    """Return the largest resident memory of this process so far; Linux counts it in KiB, macOS in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
