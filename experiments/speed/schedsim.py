"""Measure sched-sim, a simulator that takes one step at a time, on the requests of servesim's usual case.

https://pypi.org/project/sched-sim, version 0.2.1; the names below are those of its package.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sched_sim.core.event_engine import Simulator
from sched_sim.core.request import Request
from sched_sim.hardware.presets import PRESETS
from sched_sim.hardware.profile import HardwareProfile
from sched_sim.schedulers.factory import create_scheduler
from sched_sim.visualizer.exporter import export_metrics_json

from experiments.speed.child import answer
from experiments.speed.sample import Sample
from servesim.results.simulator import peak_memory_bytes
from servesim.streams import Streams
from servesim.workload.arrivals import Poisson
from servesim.workload.lengths import Fixed
from servesim.workload.synthetic import Synthetic

WARM_UP = 20
TOKEN_BUDGET, MAX_SEQUENCES = 8192, 1024  # servesim's defaults
GPUS = 4


def measure(rate_rps: float, requests: int, input_tokens: int, output_tokens: int) -> dict[str, Any]:
    """Return the sample of Poisson arrivals with fixed lengths, its metrics written to disk."""
    lengths = Fixed(input_tokens, output_tokens)
    with TemporaryDirectory() as folder:
        _run(Synthetic(Poisson(rate_rps), lengths, WARM_UP), Path(folder))
        begun_s = time.process_time()
        simulator = _run(Synthetic(Poisson(rate_rps), lengths, requests), Path(folder))
        cpu_s, peak_bytes = time.process_time() - begun_s, peak_memory_bytes()
    sizes = simulator.iteration_batch_sizes
    return dataclasses.asdict(
        Sample(
            cpu_s,
            peak_bytes,
            requests=sum(request.completed_at is not None for request in simulator.all_requests),
            steps=len(sizes),
            sequences=sum(sizes) / len(sizes),
        )
    )


def _run(workload: Synthetic, folder: Path) -> Simulator:
    hardware = _hardware()
    scheduler = create_scheduler("chunked", hardware, token_budget=TOKEN_BUDGET, max_batch_size=MAX_SEQUENCES)
    simulator = Simulator(hardware, scheduler)
    simulator.submit_workload(_requests(workload))
    export_metrics_json(simulator.run(), folder / "metrics.json")
    return simulator


def _hardware() -> HardwareProfile:
    """Return the preset of a 70B model on an H100, times four GPUs, with FP8 weights.

    One ``dtype_bytes`` stands for weights and KV cache; twice the KV heads make up for a cache in BF16.
    """
    gpu = PRESETS["h100"]
    four: HardwareProfile = gpu.model_copy(
        update={
            "vram_gb": GPUS * gpu.vram_gb,
            "memory_bandwidth_gb_s": GPUS * gpu.memory_bandwidth_gb_s,
            "fp16_tflops": GPUS * 2 * gpu.fp16_tflops,
            "dtype_bytes": 1,
            "num_kv_heads": 2 * gpu.num_kv_heads,
        }
    )
    return four


def _requests(workload: Synthetic) -> list[Request]:
    number = itertools.count()
    return [
        Request(
            request_id=f"req_{next(number)}",
            arrived_at=sent_s,
            prompt_tokens=input_tokens,
            output_tokens=output_tokens,
        )
        for batch in workload.batches(Streams(0))
        for sent_s, input_tokens, output_tokens in zip(
            *(column.tolist() for column in batch[:3]), strict=True
        )
    ]


if __name__ == "__main__":
    answer(measure)
