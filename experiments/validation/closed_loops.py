"""Closed loops of one engine: latencies by lengths, users and tensor parallelism."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from calibration.overhead import ENGINES, OWN_CONF, Engine
from experiments.validation.score import KERNELS_ALONE, Errors, Part, Score
from servesim.report.validation.points import points_page
from servesim.validate.closed_loop import Simulated, simulate_points

TPOT, TTFT = ("tpot", "mean"), ("ttft", "mean")
NAMES = {
    "vllm-0.12": "vLLM 0.12, Qwen3-32B, H100, closed loop",
    "trtllm-1.0": "TensorRT-LLM 1.0rc3, Llama-3.1-8B, H100, closed loop",
    "vllm-0.8": "vLLM 0.8.5, Llama-3.1-8B, H100 64 GB, fixed batches",
}
BOUNDS = {"vllm-0.12": 0.045, "trtllm-1.0": 0.065, "vllm-0.8": None}
#: The one row of the Qwen runs that is looked at by itself: its KV runs out.
FULL = {"tp": 2, "isl": 4096, "osl": 1024, "concurrency": 128}


def closed_loops(data: Path) -> Iterator[Part]:
    """Yield how each engine's runs compare: those that its terms were fitted on, and those held out."""
    for engine in ENGINES:
        yield closed_loop(engine, data.parent)


def closed_loop(engine: Engine, data: Path) -> Part:
    """Return how the runs of an engine compare."""
    points, own = (
        engine.read(data),
        [*engine.overrides, "cluster.replicas=1", f"engine_overhead={engine.name}"],
    )
    found, bare = (
        simulate_points(points, [*own, *terms], config_dir=OWN_CONF) for terms in ((), KERNELS_ALONE)
    )
    rows = table(found).assign(kernels=table(bare).simulated)
    held_out = rows.astype(str)[list(engine.held_out)].eq(pd.Series(engine.held_out)).all(axis=1)
    name = NAMES[engine.name]
    said = ", ".join(f"{key} {value}" for key, value in engine.held_out.items())
    scores = [
        score(rows[~held_out & (rows.metric != "ttft")], name, f"{engine.name}: fitted on these", None),
        score(
            rows[held_out & (rows.metric != "ttft")],
            f"{name}, {said}",
            f"{engine.name}: these held out",
            BOUNDS[engine.name],
        ),
    ]
    tables = {"Mean TPOT by lengths and users: error in %": by_lengths(rows[rows.metric == "tpot"])}
    if engine.name == "vllm-0.12":
        scores.append(score(rows[rows.metric == "ttft"], name, "vllm-0.12: fitted on TPOT alone", None))
        tables["The row whose KV runs out (ms)"] = full(rows)
    return Part(name, scores, tables, {engine.name: points_page(found, found.scenario.as_dict(), [])})


def table(simulated: Simulated) -> pd.DataFrame:
    """Return the points with what was measured and simulated of each, answers of no TPOT left out."""
    rows = simulated.table
    return rows[rows.measured > 0].reset_index(drop=True)


def score(rows: pd.DataFrame, runs: str, terms: str, bound: float | None) -> Score:
    """Return the score of the means of some points."""
    metrics = " or ".join(dict.fromkeys(rows.metric)).upper().replace("THROUGHPUT", "requests/s")
    errors = [Errors.of(rows[column], rows.measured) for column in ("kernels", "simulated")]
    return Score(runs, f"mean {metrics}", *errors, terms, bound)


def by_lengths(rows: pd.DataFrame) -> pd.DataFrame:
    """Return errors of mean TPOT in percent: a row for lengths and GPUs, a column for users."""
    errors = rows.assign(error=(100 * (rows.simulated / rows.measured - 1)).round(1))
    wide = errors.pivot_table(index=["isl", "osl", "tp"], columns="concurrency", values="error")
    return wide.rename(columns=lambda users: f"{users} users").reset_index()


def full(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the row whose KV runs out."""
    chosen = rows[rows[list(FULL)].eq(pd.Series(FULL)).all(axis=1)]
    return pd.DataFrame(
        {
            "figure": [f"mean {metric.upper()}" for metric in chosen.metric],
            "measured": (1e3 * chosen.measured).round(1),
            "simulated": (1e3 * chosen.simulated).round(1),
            "error %": (100 * (chosen.simulated / chosen.measured - 1)).round(1),
        }
    )
