"""Static batches of Llama-2-70B on A100s and H100s, as the Splitwise study timed them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

import servesim
from experiments.validation.score import KERNELS_ALONE, Errors, Part, Score

FILE = Path("splitwise_llama2_70b_static_batch.csv")
GPUS = {"a100-80gb": "a100-sxm-80gb", "h100-80gb": "h100-sxm"}
KEYS = ["tensor_parallel", "prompt_size", "batch_size", "token_size"]
#: BF16 FLOP/s at peak (datasheets), and multiplications per prompt token: no prompt is computed faster.
PEAK = {"a100-80gb": 312e12, "h100-80gb": 989.4e12}
FLOPS_PER_TOKEN = 2 * 68.7e9
#: Prompt tokens of a batch from which its prefill is bound by the GPU and not by the host of that stack.
MANY_TOKENS = 2048


def splitwise(data: Path) -> Part:
    """Return how prompt times and the ratios between the GPUs compare, with kernels alone."""
    rows = pd.read_csv(data / FILE)
    tokens = rows.prompt_size * rows.batch_size
    floor_ms = 1e3 * FLOPS_PER_TOKEN * tokens / rows.tensor_parallel / rows.hardware.map(PEAK)
    possible = rows.prompt_time >= floor_ms
    left_out = f"{(~possible).sum()} of {len(rows)} runs left out: prompts faster than the peak of their GPUs"
    rows = rows[possible]
    means = rows.groupby(["hardware", *KEYS], as_index=False)[["prompt_time", "token_time"]].mean()
    simulated = pd.DataFrame([static(row) for row in means.to_dict("records")])
    both = pd.concat([means, simulated], axis=1)
    many = both[both.prompt_size * both.batch_size >= MANY_TOKENS]
    pairs = ratios(both)
    long = pairs[pairs.prompt_size * pairs.batch_size >= MANY_TOKENS]
    runs, terms = "Splitwise, Llama-2-70B, static batches", "none: an old stack, bound by its host"
    scores = [
        Score(f"{runs}, {name}", f"prompt time from {MANY_TOKENS:,} tokens on", None, errors, terms)
        for name, errors in (
            (gpu, Errors.of(part.ttft_ms, part.prompt_time)) for gpu, part in many.groupby("hardware")
        )
    ]
    scores += [
        Score(
            f"{runs}, A100 over H100",
            f"ratio of prompt times from {MANY_TOKENS:,} tokens on",
            None,
            Errors.of(long.ttft_ms, long.prompt_time),
            terms,
        ),
        Score(
            f"{runs}, A100 over H100",
            "ratio of token times",
            None,
            Errors.of(pairs.tpot_ms, pairs.token_time),
            terms,
        ),
    ]
    tables = {f"A100 over H100, means over the runs ({left_out})": by_width(pairs, long)}
    return Part("Splitwise: Llama-2-70B in static batches", scores, tables)


def static(row: dict[str, Any]) -> dict[str, float]:
    """Return the prompt and token times (ms) of a batch, simulated."""
    batch = int(row["batch_size"])
    scenario = servesim.load(
        "model=llama2-70b",
        "model.max_position_embeddings=16384",
        f"gpu={GPUS[str(row['hardware'])]}",
        "scheduler=static",
        f"scheduler.batch_size={batch}",
        f"cluster.tensor_parallel_size={int(row['tensor_parallel'])}",
        "cluster.replicas=1",
        "workload/arrivals=closed_loop",
        f"workload.arrivals.concurrency={batch}",
        f"workload.requests={batch}",
        "workload/lengths=fixed",
        f"workload.lengths.input={int(row['prompt_size'])}",
        f"workload.lengths.output={int(row['token_size'])}",
        "ignore_capacity=true",
        *KERNELS_ALONE,
    )
    latency = servesim.run(scenario).summary["latency"]
    return {"ttft_ms": 1e3 * latency["ttft_s"]["mean"], "tpot_ms": 1e3 * latency["tpot_s"]["mean"]}


def ratios(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the times on the A100 over those on the H100, of runs that are alike."""
    tables = {name: part.set_index(KEYS).drop(columns="hardware") for name, part in rows.groupby("hardware")}
    return (tables["a100-80gb"] / tables["h100-80gb"]).dropna().reset_index()


def by_width(pairs: pd.DataFrame, long: pd.DataFrame) -> pd.DataFrame:
    """Return mean ratios by tensor parallelism, measured and simulated."""
    columns = {"prompt_time": "prompt, measured", "ttft_ms": "simulated"}
    first = long.groupby("tensor_parallel")[list(columns)].mean().rename(columns=columns)
    columns = {"token_time": "token, measured", "tpot_ms": "simulated "}
    second = pairs.groupby("tensor_parallel")[list(columns)].mean().rename(columns=columns)
    return pd.concat([first, second], axis=1).round(2).reset_index()
