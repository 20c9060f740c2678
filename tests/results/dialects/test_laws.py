"""Dialects agree where their definitions do, and each statistic is the one that its tool has."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim import load, run
from servesim.results.dialects.known import DIALECTS
from servesim.results.dialects.sample import Sample
from servesim.results.dialects.statistics import Weighted, aiperf, bench, guidellm
from servesim.results.slo import Slo
from tests.report.run.runs import KINDS
from tests.results.dialects.run import sample_of, values
from tests.results.made import records, request, waiting

SAMPLES = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=30).map(np.array)


@cache
def told(kind: str) -> dict[str, dict[str, Any]]:
    """Return what each dialect says of a small run, and the plain summary of the run."""
    summaries = {name: run(load(*KINDS[kind], f"metrics={name}")).summary for name in DIALECTS}
    return {"summary": summaries["vllm"]} | {
        name: summary["metrics"]["values"] for name, summary in summaries.items() if name != "vllm"
    }


@pytest.mark.parametrize("kind", ["continuous", "static", "prefill_first", "preempting", "closed"])
def test_what_is_defined_alike_is_equal(kind: str) -> None:
    said = told(kind)
    latency, aiperf_, x = said["summary"]["latency"], said["aiperf"], said["inferencex"]
    for name, plain, other in (
        ("time_to_first_token", "ttft_s", "ttft"),
        ("inter_token_latency", "tpot_s", "tpot"),
        ("inter_chunk_latency", "itl_s", "itl"),
        ("request_latency", "e2e_s", "e2el"),
    ):
        assert aiperf_[name]["p99"] == pytest.approx(1e3 * latency[plain]["p99"], rel=1e-12)
        assert aiperf_[name]["avg"] == pytest.approx(1e3 * latency[plain]["mean"], rel=1e-12)
        assert x[other]["p99"] == pytest.approx(latency[plain]["p99"], rel=1e-12)
        assert x[other]["std"] == pytest.approx(latency[plain]["std"], rel=1e-9)
    assert aiperf_["output_token_throughput_per_user"]["avg"] == pytest.approx(
        latency["interactivity"]["mean"], rel=1e-12
    )


@pytest.mark.parametrize("kind", ["continuous", "static", "disaggregated", "preempting"])
def test_rates_of_a_clean_run_are_equal(kind: str) -> None:
    said = told(kind)
    rates, accounting = said["summary"]["throughput"], said["summary"]["accounting"]
    assert accounting["clean"]
    assert said["aiperf"]["output_token_throughput"] == pytest.approx(rates["output_tokens_per_s"])
    assert said["guidellm"]["output_tokens_per_second"]["mean"] == pytest.approx(rates["output_tokens_per_s"])
    assert said["inferencex"]["tput_per_gpu"] == pytest.approx(rates["total_tokens_per_s_per_gpu"])
    assert said["aiperf"]["request_throughput"] == pytest.approx(rates["requests_per_s"])


@pytest.mark.parametrize("kind", ["continuous", "preempting", "prefill_first"])
def test_weighing_requests_by_their_gaps_gives_the_mean_gap(kind: str) -> None:
    """GuideLLM's mean ITL is vLLM's: sum of (last - first) over sum of (n - 1)."""
    said = told(kind)
    mean_ms = said["guidellm"]["inter_token_latency_ms"]["mean"]
    assert mean_ms == pytest.approx(1e3 * said["summary"]["latency"]["itl_s"]["mean"], rel=1e-9)


def test_roles_share_the_rates_per_gpu_of_the_summary() -> None:
    said = told("disaggregated")
    roles = said["summary"]["throughput"]["roles"]
    assert said["inferencex"]["output_tput_per_gpu"] == pytest.approx(
        roles["decode"]["output_tokens_per_s_per_gpu"]
    )


def test_failed_requests_only_raise_their_count() -> None:
    """The same run with and without two requests that never completed."""
    good = [request(0.0, 1.0, 1.0, request_id=0, output_tokens=1), request(1.0, 3.0, 3.0, output_tokens=1)]
    more = [*good, waiting(1.5, request_id=2), waiting(2.0, request_id=3)]
    for dialect, failures in (("vllm", "failed"), ("aiperf", "error_request_count")):
        clean, failed = (values(dialect, sample_of(records(rows), 3.0, Slo())) for rows in (good, more))
        assert (clean.pop(failures), failed.pop(failures)) == (0, 2)
        assert clean == failed


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_run_that_served_nothing_has_every_metric(dialect: str) -> None:
    """vLLM, InferenceX and GuideLLM say 0 of an empty sample, AIPerf nothing."""
    found = values(dialect, sample_of(records([waiting(0.0)]), 1.0))
    assert found.keys() == values(dialect).keys()
    (name, value), *_ = found.items()
    assert set(value.values()) == ({None, 0} if dialect == "aiperf" else {0.0}), name


@given(sample=SAMPLES)
def test_linear_percentiles_are_numpys(sample: Any) -> None:
    got, names = aiperf(sample), (1, 5, 10, 25, 50, 75, 90, 95, 99)
    assert [got[f"p{p}"] for p in names] == np.percentile(sample, names).tolist()
    assert (got["avg"], got["std"]) == (np.mean(sample), np.std(sample))
    assert bench((99,))(sample)["p99"] == got["p99"]


@given(sample=SAMPLES)
def test_guidellms_percentiles_are_values_of_the_sample(sample: Any) -> None:
    got = guidellm(Weighted(sample, np.ones(len(sample))))
    assert {got[name] for name in ("p001", "p25", "median", "p99", "p999")} <= set(sample.tolist())
    assert got["mean"] == pytest.approx(np.mean(sample))
    assert got["std_dev"] == pytest.approx(np.std(sample), abs=1e-9)


@given(sample=SAMPLES, data=st.data())
def test_a_weight_is_a_repetition(sample: Any, data: st.DataObject) -> None:
    weights = np.array(data.draw(st.lists(st.integers(1, 4), min_size=len(sample), max_size=len(sample))))
    once = guidellm(Weighted(np.repeat(sample, weights), np.ones(weights.sum())))
    assert guidellm(Weighted(sample, weights)) == pytest.approx(once, rel=1e-9, abs=1e-9)


def test_every_metric_is_defined_in_one_line() -> None:
    for dialect in DIALECTS.values():
        names = [metric.name for metric in dialect.metrics]
        assert len(names) == len(set(names))
        for metric in dialect.metrics:
            assert metric.unit
            assert metric.meaning
            assert "\n" not in metric.meaning


def test_a_sample_is_in_order_of_sending() -> None:
    result = run(load(*KINDS["preempting"]))
    sample = Sample.of(result._records, result.summary["duration_s"], Slo(), {"serve": 1})
    assert (np.diff(sample.sent_s) >= 0).all()
    assert sample.completed == result.summary["accounting"]["completed"]
