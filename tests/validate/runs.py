"""Simulated runs in the guise of measured ones: files as a benchmark would have left them."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from servesim import load, run
from servesim.results.result import Result
from servesim.validate.measured import Measured
from servesim.validate.simulated import observed

#: One small replica, whose step times are arithmetic, under load.
OVERRIDES = [
    "model=llama3.1-8b",
    "calibration=roofline",
    "cluster.replicas=1",
    "cluster.tensor_parallel_size=1",
    "scheduler.max_num_seqs=16",
]
TRAFFIC = ["workload.requests=120", "workload/lengths=uniform"]
POISSON = "workload.arrivals.rate_rps=8"


def served(*arrivals: str) -> Result:
    """Run the small replica under some traffic: 8 requests/s unless other arrivals are given."""
    return run(load(*OVERRIDES, *TRAFFIC, *(arrivals or [POISSON])))


def rows_of(run: Measured) -> list[dict[str, Any]]:
    """Return the requests of a run as rows of a table, times in seconds to the last bit."""
    names = ("sent_s", "input_tokens", "output_tokens", "ttft_s", "e2e_s")
    columns = [getattr(run, name).tolist() for name in names]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def write_csv(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write rows as a CSV; a float is written so that reading gives the same one."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def exported(result: Result, path: Path, change: Callable[[dict[str, Any]], dict[str, Any]] = dict) -> Path:
    """Write a run's requests as a CSV, each row as ``change`` makes it."""
    return write_csv(path, [change(row) for row in rows_of(observed(result))])


def vllm_result(run: Measured, **more: Any) -> dict[str, Any]:
    """Return a run as ``vllm bench serve --save-detailed`` keeps it, its gaps all equal."""
    gaps = [
        [float(tpot)] * (int(tokens) - 1) if tokens > 1 else []
        for tpot, tokens in zip(run.tpot_s, run.output_tokens, strict=True)
    ]
    return {
        "model_id": "meta-llama/Llama-3.1-8B",
        "request_rate": 8.0,
        "burstiness": 1.0,
        "max_concurrency": None,
        "duration": run.span_s,
        "completed": run.requests,
        "request_throughput": run.requests / run.span_s,
        "output_throughput": float(run.output_tokens.sum()) / run.span_s,
        "start_times": (run.sent_s + 479_748.25).tolist(),
        "input_lens": run.input_tokens.tolist(),
        "output_lens": run.output_tokens.tolist(),
        "ttfts": run.ttft_s.tolist(),
        "itls": gaps,
        "latencies": run.e2e_s.tolist(),
        "errors": [""] * run.requests,
        **more,
    }


def write_json(path: Path, value: Any) -> Path:
    """Write a JSON value."""
    path.write_text(json.dumps(value))
    return path


def small(count: int = 12) -> Measured:
    """Return a made-up run of a few requests, a second apart."""
    tokens = np.arange(2, 2 + count)
    ttft_s = 0.1 + 0.01 * np.arange(count)
    return Measured(
        "small",
        "made",
        np.arange(count, dtype=float),
        tokens * 10,
        tokens,
        ttft_s,
        ttft_s + 0.02 * (tokens - 1),
    )
