"""Measure servesim from Python: one scenario, from its first random number to its last file."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

import servesim
from experiments.speed.child import answer
from experiments.speed.sample import Sample
from servesim.results.simulator import peak_memory_bytes

#: Requests of the run before the measured one, which imports what is imported on first use.
WARM_UP = 100


def measure(overrides: list[str], requests: int) -> dict[str, Any]:
    """Return the sample of a scenario with so many requests, its results written to disk."""
    with TemporaryDirectory() as folder:
        warm_up, measured = Path(folder, "warm-up"), Path(folder, "measured")
        _run(servesim.load(*overrides, f"workload.requests={WARM_UP}"), warm_up)
        scenario = servesim.load(*overrides, f"workload.requests={requests}")
        begun_s = time.process_time()
        summary = _run(scenario, measured)
        cpu_s, peak_bytes = time.process_time() - begun_s, peak_memory_bytes()
        return dataclasses.asdict(_sample(cpu_s, peak_bytes, summary, _mean_sequences(measured)))


def _run(scenario: servesim.Scenario, folder: Path) -> dict[str, Any]:
    folder.mkdir()
    result = servesim.run(scenario, folder)
    result.save(folder)
    return result.summary


def _mean_sequences(folder: Path) -> float:
    """Return the mean number of sequences in a step, of all steps in a run folder."""
    table = pq.read_table(folder / "steps.parquet", columns=["steps", "sequences"])
    rows = pc.sum(pc.multiply(table["steps"], table["sequences"])).as_py()
    return float(rows / pc.sum(table["steps"]).as_py())


def _sample(cpu_s: float, peak_bytes: int, summary: dict[str, Any], sequences: float) -> Sample:
    accounting, simulator = summary["accounting"], summary["simulator"]
    if not accounting["clean"]:
        raise RuntimeError(f"not every request completed: {accounting}")
    return Sample(
        cpu_s,
        peak_bytes,
        requests=accounting["injected"],
        tokens=round(summary["throughput"]["total_tokens_per_s"] * summary["duration_s"]),
        steps=simulator["steps"],
        sequences=sequences,
        events=simulator["events"],
        preemptions=accounting["preemptions"],
    )


if __name__ == "__main__":
    answer(measure)
