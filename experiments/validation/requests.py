"""Runs of which every request was measured, replayed with nothing fitted on them."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.validation.score import KERNELS_ALONE, Errors, Part, Score
from servesim.report.validation.page import runs_page
from servesim.results.result import Result
from servesim.validate.compare import Comparison, compare
from servesim.validate.measured import Measured
from servesim.validate.readers import read, read_runs
from servesim.validate.replay import base, replay

#: Terms fitted on greedy sampling, as these runs have it; see the answer for why that matters.
GREEDY = ("engine_overhead=vllm-0.8",)

RTX = Path("vllm019_rtxpro6000_llama8b")
#: As its meta.json has the engine's arguments; what it does not have is vLLM's default.
RTX_ENGINE = (
    "model=llama3.1-8b",
    "gpu=rtx-pro-6000",
    "cluster.tensor_parallel_size=1",
    "cluster.replicas=1",
    "scheduler.max_num_seqs=128",
    "scheduler.max_num_batched_tokens=2048",
)

#: Prompt tokens from which the ShareGPT run shows cached prefixes.
LONG = 1600
LLM_D = Path("vllm_llama70b_2x_h100_tp2_per_request.csv")
#: Two replicas and the model are told; TP 2 and BF16 follow from the latencies. 0.95 of the memory is the
#: default of the benchmark that ran it (llm-d/llm-d-benchmark, setup/env.sh): 0.9, vLLM's, leaves no KV.
LLM_D_ENGINE = (
    "model=llama3.1-70b",
    "model.weights_dtype=bf16",
    "gpu=h100-sxm",
    "cluster.tensor_parallel_size=2",
    "cluster.replicas=2",
    "scheduler.gpu_memory_utilization=0.95",
)


def rtx_pro_6000(data: Path) -> Part:
    """Return how the run of vLLM 0.19 on an RTX PRO 6000 compares, its queue over time included."""
    measured = read(data / RTX / "requests.jsonl")
    results = [replay(measured, [*RTX_ENGINE, *terms]) for terms in (GREEDY, KERNELS_ALONE, ())]
    said = [compare(measured, result) for result in results]
    counts = over_time(results[0], data / RTX / "timeseries.csv")
    runs = "vLLM 0.19, Llama-3.1-8B, RTX PRO 6000, open loop to saturation"
    terms = "vllm-0.8: 8B on another GPU"
    scores = [
        score(runs, said, "ttft", "mean", terms, 0.15),
        score(runs, said, "tpot", "mean", terms, 0.05),
        score(runs, said, "throughput", "output_tokens", terms, None),
    ]
    other = [
        score(runs, [said[2], said[1]], metric, "mean", "vllm-0.12: 32B, sampled", None)
        for metric in ("ttft", "tpot")
    ]
    off = [
        (counts[f"{name}, simulated"] - counts[f"{name}, measured"]).abs().mean()
        for name in ("running", "waiting")
    ]
    title = "Requests in the engine, {:.1f} running and {:.1f} waiting off on average".format(*off)
    tables = {"All figures, with the terms of vllm-0.8": shown(said[0]), title: counts}
    page = runs_page(said[:1], results[0].summary["scenario"], [], [])
    return Part("vLLM 0.19 on an RTX PRO 6000", [*scores, *other], tables, {"rtx-pro-6000": page})


def llm_d(data: Path) -> Part:
    """Return how two replicas of a 70B model compare, by rate."""
    rows = []
    for measured in read_runs(data / LLM_D, by=("scenario", "qps")):
        said = [
            compare(measured, replay(measured, [*LLM_D_ENGINE, *terms])) for terms in (GREEDY, KERNELS_ALONE)
        ]
        rows.append((measured, said))
    scores = []
    for name in ("short_input", "sharegpt"):
        chosen = [(run, said) for run, said in rows if name in run.source]
        for metric, bound in (("tpot", 0.10), ("ttft", None)):
            errors = [
                Errors.of(*zip(*(pair(said[at], metric, "p50") for _, said in chosen), strict=True))
                for at in (0, 1)
            ]
            runs = f"vLLM about 0.8.5, Llama-3.1-70B BF16, 2 x TP2 H100, {name}"
            scores.append(
                Score(
                    runs, f"p50 {metric.upper()}", errors[1], errors[0], "vllm-0.8: 8B on another GPU", bound
                )
            )
    (long,) = [run for run, _ in rows if "sharegpt" in run.source]
    scores.append(computed(long))
    told = base([*LLM_D_ENGINE, *GREEDY]).as_dict()
    page = runs_page([said[0] for _, said in rows], told, [], [])
    return Part("llm-d: Llama-3.1-70B on two replicas", scores, {"By rate": by_rate(rows)}, {"llm-d": page})


def computed(run: Measured) -> Score:
    """Return the score of the ShareGPT run without the tokens that its long prompts found in a cache.

    TTFT grows with the prompt up to some 1,600 tokens and falls beyond, which only cached prefixes explain.
    A longer prompt is taken to be as long as its own TTFT says, on the line through the shorter ones.
    """
    few = run.input_tokens < LONG
    slope, start_s = np.polyfit(run.input_tokens[few], run.ttft_s[few], 1)
    told = np.clip((run.ttft_s - start_s) / slope, 16, run.input_tokens).astype(np.int64)
    cut = replace(run, input_tokens=np.where(few, run.input_tokens, told))
    said = [compare(cut, replay(cut, [*LLM_D_ENGINE, *terms])) for terms in (GREEDY, KERNELS_ALONE)]
    left = f"{cut.input_tokens.sum() / run.input_tokens.sum():.0%} of its prompt tokens computed"
    return score(f"the same, {left}, as TTFT tells", said, "tpot", "p50", "the same", 0.10)


def pair(said: Comparison, metric: str, statistic: str) -> tuple[float, float]:
    """Return a figure, simulated and measured."""
    measured, simulated = said.figures[metric, statistic]
    return simulated, measured


def score(
    runs: str, said: Sequence[Comparison], metric: str, statistic: str, terms: str, bound: float | None
) -> Score:
    """Return the score of one figure from the comparisons with terms and with kernels alone."""
    errors = [Errors.of(*([value] for value in pair(each, metric, statistic))) for each in said[:2]]
    figure = f"{statistic} {metric.upper()}" if metric != "throughput" else f"{statistic.replace('_', ' ')}/s"
    return Score(runs, figure, errors[1], errors[0], terms, bound)


def shown(said: Comparison) -> pd.DataFrame:
    """Return the figures of a comparison as the answer shows them."""
    table = said.table()
    rates = table.metric == "throughput"
    scale = np.where(rates, 1.0, 1e3)
    return pd.DataFrame(
        {
            "figure": [
                f"{row.statistic.replace('_', ' ')}/s"
                if rate
                else f"{row.statistic} {row.metric.upper()} (ms)"
                for row, rate in zip(table.itertuples(), rates, strict=True)
            ],
            "measured": (table.measured * scale).round(1),
            "simulated": (table.simulated * scale).round(1),
            "error %": (100 * table.error).round(1),
            "Kolmogorov-Smirnov": [
                round(said.ks[metric].ks, 2) if metric in said.ks else "" for metric in table.metric
            ],
        }
    )


def over_time(result: Result, series: Path) -> pd.DataFrame:
    """Return the running and waiting counts at the moments of the engine's own series."""
    with series.open() as file:
        moments = [
            (float(row["t"]), int(row["running"]), int(row["waiting"])) for row in csv.DictReader(file)
        ]
    rows = result.requests
    sent, begun = rows.sent_s.to_numpy(), (rows.sent_s + rows.queue_s).to_numpy()
    over = (rows.sent_s + rows.e2e_s).to_numpy()
    table = [
        (t, running, int(((begun <= t) & (over > t)).sum()), waiting, int(((sent <= t) & (begun > t)).sum()))
        for t, running, waiting in moments
    ]
    names = [
        "t (s)",
        *(f"{what}, {how}" for what in ("running", "waiting") for how in ("measured", "simulated")),
    ]
    return pd.DataFrame(table, columns=names)


def by_rate(rows: Sequence[tuple[Measured, Sequence[Comparison]]]) -> pd.DataFrame:
    """Return the medians of each run, measured and simulated."""
    table = []
    for run, said in rows:
        cells: list[object] = [run.source.partition(" ")[2] or run.source, run.requests]
        for metric in ("tpot", "ttft"):
            simulated, measured = pair(said[0], metric, "p50")
            cells += [
                round(1e3 * measured, 1),
                round(1e3 * simulated, 1),
                round(100 * (simulated / measured - 1), 1),
            ]
        table.append(cells)
    names = [
        "run",
        "n",
        "p50 TPOT, measured (ms)",
        "simulated",
        "error %",
        "p50 TTFT, measured (ms)",
        "simulated ",
        "error % ",
    ]
    return pd.DataFrame(table, columns=names)
