"""vLLM's result file: its arrays amount to its summary, and its plotters find their axes."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from servesim import load, run
from servesim.results.dialects.sample import Sample
from servesim.results.export.about import About
from servesim.results.export.vllm import bench_result, file_name
from servesim.results.slo import Slo
from servesim.results.summary import plain
from tests.report.run.runs import KINDS, SMALL
from tests.results.dialects.run import sample_of, small
from tests.results.export.vllm_metrics import summary_of

GOODPUT_MS = {"ttft": 500.0, "tpot": 50.0}
ABOUT = About("org/m", "1", 4.0, 1.0, None, {}, {"serve": 2}, 2, 1)


@cache
def exported(*overrides: str) -> dict[str, Any]:
    """Return the detailed result of a run, through JSON."""
    result = run(load(*overrides))
    slo, about = Slo(ttft_s=0.5, tpot_s=0.05), About.of(result.summary)
    sample = Sample.of(result._records, result.summary["duration_s"], slo, about.gpus)
    text = json.dumps(plain(bench_result(sample, about, detailed=result._records)), allow_nan=False)
    read: dict[str, Any] = json.loads(text)
    return read


@pytest.mark.parametrize("kind", KINDS)
def test_the_arrays_amount_to_the_summary(kind: str) -> None:
    """Recomputed as vLLM does: numpy percentiles, ddof 0, pooled gaps, one-second buckets, 0 where empty."""
    got = exported(*KINDS[kind])
    for name, expected in summary_of(got, GOODPUT_MS).items():
        assert got[name] == pytest.approx(expected, rel=1e-9, abs=1e-12), name


@pytest.mark.parametrize("kind", ["continuous", "preempting", "prefill_first", "static"])
def test_gaps_end_where_the_latency_does(kind: str) -> None:
    got = exported(*KINDS[kind])
    for ttft, gaps, latency, tokens in zip(
        *(got[name] for name in ("ttfts", "itls", "latencies", "output_lens")), strict=True
    ):
        assert len(gaps) == tokens - 1
        assert ttft + sum(gaps) == pytest.approx(latency, rel=1e-9)


def test_keys_stand_in_vllms_order() -> None:
    heading = ["endpoint_type", "backend", "label", "model_id", "tokenizer_id", "num_prompts"]
    load_keys = ["request_rate", "burstiness", "max_concurrency"]
    totals = ["duration", "completed", "failed", "total_input_tokens", "total_output_tokens"]
    rates = ["request_throughput", "request_goodput", "output_throughput", "total_token_throughput"]
    arrays = [
        "input_lens",
        "output_lens",
        "ttfts",
        "itls",
        "latencies",
        "start_times",
        "queue_times",
        "generated_texts",
        "errors",
    ]
    peaks = ["max_output_tokens_per_s", "max_concurrent_requests", "rtfx"]
    statistics = [
        f"{statistic}_{name}_ms"
        for name in ("ttft", "tpot", "itl", "e2el")
        for statistic in ("mean", "median", "std", "p99")
    ]
    own = [
        "servesim_version",
        "tensor_parallel_size",
        "pipeline_parallel_size",
        "data_parallel_size",
        "num_gpus",
    ]
    expected = [*heading, *own, *load_keys, *totals, *rates, *arrays, *peaks, *statistics]
    assert list(exported(*KINDS["continuous"])) == expected
    brief = bench_result(sample_of(small()), ABOUT, "20260131-120000")
    assert list(brief) == ["date", *(key for key in expected if key not in arrays)]


def test_a_request_that_failed_has_an_error_and_nothing_else() -> None:
    got = bench_result(sample_of(small()), ABOUT, detailed=small())
    assert got["errors"] == ["", "", "dropped prompt_too_long", ""]
    assert got["input_lens"] == [10, 20, 99, 4]
    assert got["output_lens"] == [5, 3, 0, 1]
    assert got["ttfts"] == [1.0, 2.0, 0.0, 0.75]
    assert got["itls"] == [[0.5, 1.0, 0.25, 0.5], [0.25, 0.5], [], []]
    assert got["start_times"] == [0.0, 0.5, 2.0, 3.0]
    assert (got["completed"], got["failed"], got["num_prompts"]) == (3, 1, 4)


@pytest.mark.parametrize(
    ("overrides", "rate", "burstiness", "limit"),
    [
        (("workload.arrivals.rate_rps=3",), 3.0, 1.0, None),
        (("workload/arrivals=gamma", "workload.arrivals.burstiness=0.5"), 4.0, 0.5, None),
        (("workload/arrivals=constant",), 4.0, "inf", None),
        (("workload/arrivals=closed_loop", "workload.arrivals.concurrency=6"), "inf", 1.0, 6),
    ],
)
def test_the_load_is_told_as_vllms_options(
    overrides: tuple[str, ...], rate: float | str, burstiness: float | str, limit: int | None
) -> None:
    got = exported(*SMALL, "workload.requests=8", *overrides)
    assert (got["request_rate"], got["burstiness"], got["max_concurrency"]) == (rate, burstiness, limit)


def test_the_axes_of_plot_pareto_are_there() -> None:
    """tokens/s/user = output_throughput / max_concurrency; tokens/s/GPU = .../(tp x pp x dp)."""
    got = exported(
        *SMALL, "cluster.replicas=2", "workload/arrivals=closed_loop", "workload.arrivals.concurrency=6"
    )
    parts = ("tensor", "pipeline", "data")
    sizes = [got[f"{part}_parallel_size"] for part in parts]
    assert sizes[0] * sizes[1] * sizes[2] == got["num_gpus"] == 2
    assert got["output_throughput"] / got["max_concurrency"] > 0
    two_pools = exported(*KINDS["disaggregated"])
    assert "tensor_parallel_size" not in two_pools  # no product of sizes gives the GPUs of two pools
    assert two_pools["num_gpus"] == 3


def test_the_file_is_named_as_vllms() -> None:
    assert file_name(ABOUT) == "servesim-4.0qps-m.json"
    closed = About("m", "1", float("inf"), 1.0, 6, {}, {"serve": 2}, 2, 1)
    assert file_name(closed, "20260131-120000") == "servesim-infqps-concurrency6-m-20260131-120000.json"
