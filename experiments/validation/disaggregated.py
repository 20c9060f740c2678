"""Closed loops of Llama-3.1-70B with 10,000 tokens in and 1,000 out, aggregated and disaggregated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

import servesim
from experiments.validation.score import KERNELS_ALONE, Errors, Part, Score

FILE = Path("llama70b_h100_10k1k_disagg_and_aggregated.csv")
#: What the benchmark's repository says of its runs (llm-d/llm-d-benchmark, workload/experiments and
#: kubecon2025): ten prompts for each user, sent by ``vllm bench serve``, blocks of 128 tokens, 16,000 tokens
#: at most, 95% of the memory.
COMMON = (
    "model=llama3.1-70b",
    "model.weights_dtype=bf16",
    "gpu=h100-sxm",
    "scheduler.block_size=128",
    "scheduler.max_model_len=16000",
    "scheduler.gpu_memory_utilization=0.95",
    "scheduler.max_num_seqs=1024",
    "workload/arrivals=closed_loop",
    "workload/lengths=fixed",
    "workload.lengths.input=10000",
    "workload.lengths.output=1000",
)
PROMPTS_PER_USER = 10
SHAPES = {
    "agg": ("cluster.replicas=1", "cluster.tensor_parallel_size=4"),
    "pd": (
        "scheduler=disaggregated",
        "cluster.prefill.replicas=1",
        "cluster.prefill.tensor_parallel_size=8",
        "cluster.decode.replicas=1",
        "cluster.decode.tensor_parallel_size=8",
    ),
}
NAMES = {"agg": "TP4", "pd": "1P(TP8) + 1D(TP8)"}
TERMS = ("engine_overhead=vllm-0.8",)


def ten_thousand_in(data: Path) -> Part:
    """Return how the 12 points compare, and whether tokens/s per GPU keep their order."""
    rows = pd.read_csv(data / FILE)
    for column, terms in (("simulated", TERMS), ("kernels", KERNELS_ALONE)):
        rows[column] = [closed_loop(row, terms) for row in rows.to_dict("records")]
    runs = "vLLM of September 2025, Llama-3.1-70B BF16, 10,000 in, 1,000 out"
    scores = []
    for mode, part in rows.groupby("mode"):
        errors = [Errors.of(part[column], part.output_tok_s) for column in ("kernels", "simulated")]
        scores.append(
            Score(f"{runs}, {NAMES[str(mode)]}", "output tokens/s", *errors, "vllm-0.8: 8B on another GPU")
        )
    size = (rows.simulated / rows.output_tok_s - 1).abs()
    at = rows.loc[size.idxmax()]
    scores.append(
        Score(
            f"the worst point: {NAMES[at['mode']]}, {at.concurrency} users",
            "output tokens/s",
            Errors.of([at.kernels], [at.output_tok_s]),
            Errors.of([at.simulated], [at.output_tok_s]),
            "the same",
            0.20,
        )
    )
    kept = order(rows, "simulated") == order(rows, "output_tok_s")
    title = f"Output tokens/s; tokens/s per GPU {'keep' if kept else 'do NOT keep'} their order"
    return Part("10,000 in, 1,000 out: aggregated and disaggregated", scores, {title: shown(rows)})


def closed_loop(row: dict[str, Any], terms: tuple[str, ...]) -> float:
    """Return the output tokens/s of a point, simulated over all its requests as its client measured them."""
    users = int(row["concurrency"])
    scenario = servesim.load(
        *COMMON,
        *SHAPES[row["mode"]],
        *terms,
        f"workload.arrivals.concurrency={users}",
        f"workload.requests={PROMPTS_PER_USER * users}",
    )
    return float(servesim.run(scenario).summary["throughput"]["output_tokens_per_s"])


def order(rows: pd.DataFrame, column: str) -> list[str]:
    """Return at each concurrency which shape has more tokens/s per GPU."""
    per_gpu = (rows[column] / rows.num_gpus).to_frame("rate").join(rows[["mode", "concurrency"]])
    best = per_gpu.sort_values("rate").groupby("concurrency").last()
    return list(best["mode"])


def shown(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the points as the answer shows them."""
    return pd.DataFrame(
        {
            "engines": [NAMES[mode] for mode in rows["mode"]],
            "users": rows.concurrency,
            "measured": rows.output_tok_s.round(0).astype(int),
            "simulated": rows.simulated.round(0).astype(int),
            "error %": (100 * (rows.simulated / rows.output_tok_s - 1)).round(1),
            "kernels alone": rows.kernels.round(0).astype(int),
        }
    )
