"""Single steps of an engine that were timed one by one: Sarathi's, of Yi-34B on two A100 PCIe."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from scipy.optimize import minimize_scalar

import servesim
from experiments.validation.score import Errors, Part, Score
from servesim.cost.step_time import StepTime

CONF = Path(__file__).parent / "conf"
PREFILL, DECODE, CHUNKING, MIXED = (
    Path(f"sarathi_a100_yi34b_{name}.csv")
    for name in ("tp2_prefill_steps", "tp2_decode_steps", "chunking", "mixed_batches")
)
ENGINE = (
    "model=yi-34b",
    "gpu=a100-pcie-80gb",
    "cluster.tensor_parallel_size=2",
    "cluster.replicas=1",
    "scheduler.max_num_batched_tokens=16384",
    "engine_overhead.sequence_s=0",
    "engine_overhead.prefill_factor=1",
)
#: Prompts that are judged. At 256 tokens the data has a step slower than at 512, at 16,384 one that is slower
#: whole than in chunks.
FEWEST, MOST = 1024, 8192
#: The context of the decode steps is not told.
DECODE_CONTEXT = 1024
RUNS, TERMS = "Sarathi, Yi-34B, TP2 A100 PCIe", "host time of a step fitted on the prefill steps"


def sarathi(data: Path) -> Part:
    """Return how prefill steps and chunked prompts compare, one host term fitted on the prefill steps."""
    steps = pd.read_csv(data / PREFILL).rename(columns={"batch_execution_time": "measured"})
    bare = step_time(0.0)
    steps["kernels"] = [bare.mixed(0, 0, [(int(n), 0)]) for n in steps.batch_num_tokens]
    judged = steps[steps.batch_num_tokens.between(FEWEST, MOST)]
    host_s = least_error(judged)
    steps["simulated"] = steps.kernels + host_s
    judged = steps.loc[judged.index]
    chunks = chunked(pd.read_csv(data / CHUNKING), step_time(host_s))
    few = chunks[(chunks.chunk == 512) & (chunks.prompt < 4200)]
    worst = judged.assign(size=(judged.simulated / judged.measured - 1).abs()).sort_values("size").iloc[-1]
    scores = [
        Score(RUNS, f"prefill steps of {FEWEST:,} to {MOST:,} tokens", *errors_of(judged), TERMS),
        Score(
            RUNS,
            f"the worst of them, {worst.batch_num_tokens:,.0f}",
            *errors_of(worst.to_frame().T),
            TERMS,
            0.15,
        ),
        Score(
            RUNS,
            "time of 2,047 and 4,095 tokens in chunks of 512, over whole",
            None,
            Errors.of(few["in chunks / whole, simulated"], few["in chunks / whole, measured"]),
            f"the same ({1e3 * host_s:.1f} ms)",
            0.08,
        ),
    ]
    tables = {
        f"Prefill steps (ms), with {1e3 * host_s:.1f} ms of host time": in_ms(
            steps, "batch_num_tokens", "tokens"
        ),
        "Prompts in chunks": chunks.round(3),
        f"Decode steps (ms), at {DECODE_CONTEXT:,} tokens of KV each, shown and not judged": decodes(
            data, host_s
        ),
        "Mixed steps (ms), shown and not judged": mixed(data, host_s),
    }
    return Part("Sarathi: Yi-34B on two A100 PCIe", scores, tables)


def step_time(host_s: float) -> StepTime:
    """Return the step times of the replica, with a host time per step."""
    scenario = servesim.load(*ENGINE, f"engine_overhead.step_s={host_s}", config_dir=CONF)
    return scenario.deployments()[0].step_time


def least_error(steps: pd.DataFrame) -> float:
    """Return the host time of a step (s) with the least squared relative error."""

    def error(host_s: float) -> float:
        return float((((steps.kernels + host_s) / steps.measured - 1) ** 2).sum())

    return float(minimize_scalar(error, bounds=(0.0, 0.1), method="bounded").x)


def errors_of(steps: pd.DataFrame) -> tuple[Errors, Errors]:
    """Return the errors of kernels alone and with the host's time."""
    return Errors.of(steps.kernels, steps.measured), Errors.of(steps.simulated, steps.measured)


def chunked(rows: pd.DataFrame, steps: StepTime) -> pd.DataFrame:
    """Return what splitting prompts costs: the time in chunks over the time whole, measured and simulated."""
    table = []
    for row in rows.itertuples():
        prompt, chunk = int(row.prefill_length), int(row.chunk_size)
        split = sum(
            steps.mixed(0, 0, [(min(chunk, prompt - done), done)]) for done in range(0, prompt, chunk)
        )
        whole = steps.mixed(0, 0, [(prompt, 0)])
        measured = row.prefill_execution_time_relative
        table.append((prompt, chunk, measured, split / whole, 100 * (split / whole - measured)))
    names = ["prompt", "chunk", "in chunks / whole, measured", "in chunks / whole, simulated", "points"]
    return pd.DataFrame(table, columns=names)


def decodes(data: Path, host_s: float) -> pd.DataFrame:
    """Return the decode steps beside simulated ones."""
    rows = pd.read_csv(data / DECODE).rename(columns={"batch_execution_time": "measured"})
    steps = step_time(host_s)
    counts = rows.batch_num_tokens.astype(int)
    rows["simulated"] = [steps.mixed(n, n * DECODE_CONTEXT, []) for n in counts]
    return in_ms(rows, "batch_num_tokens", "sequences")


def mixed(data: Path, host_s: float) -> pd.DataFrame:
    """Return the steps of prefill and decode together beside simulated ones; the file has them in ms."""
    rows = pd.read_csv(data / MIXED)
    steps = step_time(host_s)
    table = []
    for row in rows.itertuples():
        decoding, prompt = int(row.batch_num_decode_tokens), int(row.batch_num_prefill_tokens)
        chunks = [(prompt, 0)] if prompt else []
        simulated = 1e3 * steps.mixed(decoding, decoding * DECODE_CONTEXT, chunks)
        table.append((prompt, decoding, round(row.batch_execution_time, 1), round(simulated, 1)))
    return pd.DataFrame(table, columns=["prefill tokens", "decodes", "measured", "simulated"])


def in_ms(rows: pd.DataFrame, count: str, name: str) -> pd.DataFrame:
    """Return times of steps as the answer shows them."""
    return pd.DataFrame(
        {
            name: rows[count].astype(int),
            "measured": (1e3 * rows.measured).round(1),
            "simulated": (1e3 * rows.simulated).round(1),
            "error %": (100 * (rows.simulated / rows.measured - 1)).round(1),
        }
    )
