"""Laws of comparisons: a run agrees with itself, errors have their sign, distances are symmetric."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim.check import ConfigError
from servesim.results.result import Result
from servesim.validate.compare import Comparison, compare, distance, relative_error
from servesim.validate.load import in_flight
from servesim.validate.measured import Measured
from servesim.validate.readers import read
from servesim.validate.replay import replay, replayed, simulated
from servesim.validate.simulated import observed
from tests.validate.runs import OVERRIDES, exported, served, small, vllm_result, write_json

SAMPLES = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=40).map(np.array)


@pytest.fixture(scope="module")
def result() -> Result:
    return served()


def test_a_run_of_servesim_agrees_with_itself_exactly(result: Result, tmp_path: Path) -> None:
    measured = read(exported(result, tmp_path / "run.csv"))
    comparison = compare(measured, replay(measured, OVERRIDES))
    table = comparison.table()
    assert set(table.metric) == {"ttft", "tpot", "e2e", "throughput"}
    assert (table.error == 0).all()
    assert {distance.ks for distance in comparison.ks.values()} == {0.0}
    assert {spread.mdape for spread in comparison.per_request.values()} == {0.0}
    by_load = comparison.by_load()
    assert by_load.n.sum() == measured.requests
    assert (by_load[["ttft_error", "tpot_error"]].dropna() == 0).all(axis=None)


def test_a_closed_loop_agrees_with_itself_exactly(tmp_path: Path) -> None:
    closed = served("workload/arrivals=closed_loop", "workload.arrivals.concurrency=5")
    rows = vllm_result(observed(closed), request_rate="inf", max_concurrency=5)
    measured = read(write_json(tmp_path / "run.json", rows))
    assert measured.closed_loop
    comparison = compare(measured, replay(measured, OVERRIDES))
    assert comparison.table().query("metric in ('ttft', 'e2e')").error.abs().max() == 0
    assert comparison.ks["tpot"].ks == pytest.approx(0, abs=0.02)  # the rounding of sums of gaps


def test_a_limited_client_agrees_with_itself_where_its_queue_is_known(tmp_path: Path) -> None:
    client = ["client.max_concurrency=5", "client.api_time_s=0.003"]
    limited = observed(served("workload.arrivals.rate_rps=20", *client))
    assert limited.client_queue_s is not None
    assert limited.client_queue_s.max() > 0.1
    result = vllm_result(limited, max_concurrency=5, queue_times=limited.client_queue_s.tolist())
    measured = read(write_json(tmp_path / "run.json", result))
    again = observed(replay(measured, [*OVERRIDES, client[1]]))
    np.testing.assert_allclose(again.ttft_s, limited.ttft_s, rtol=1e-6)
    np.testing.assert_allclose(again.client_queue_s, limited.client_queue_s, atol=1e-6)


def test_gaps_between_tokens_agree_with_themselves(result: Result) -> None:
    measured = observed(result)
    comparison = compare(measured, replay(measured, OVERRIDES))
    assert comparison.ks["itl"] == (0.0, len(result.itl_s), len(result.itl_s))
    assert len(result.itl_s) == result.requests.generated_tokens.sum() - len(result.requests)
    assert comparison.error("itl", "p99") == 0


def test_figures_are_those_of_the_summary(result: Result) -> None:
    comparison = Comparison(observed(result), observed(result))
    for metric in ("ttft", "tpot", "itl", "e2e"):
        row = result.summary["latency"][f"{metric}_s"]
        for statistic in ("mean", "p50", "p90", "p99"):
            assert comparison.figures[metric, statistic][1] == pytest.approx(row[statistic], rel=1e-12)
    rates = result.summary["throughput"]
    assert comparison.figures["throughput", "requests"][1] == pytest.approx(rates["requests_per_s"])
    assert comparison.figures["throughput", "output_tokens"][1] == pytest.approx(rates["output_tokens_per_s"])


def test_a_ttft_measured_ten_per_cent_longer_gives_an_error_of_minus_one_eleventh(
    result: Result, tmp_path: Path
) -> None:
    def slower(row: dict[str, Any]) -> dict[str, Any]:
        return row | {"ttft_s": 1.1 * row["ttft_s"]}

    measured = read(exported(result, tmp_path / "run.csv", slower))
    comparison = compare(measured, replay(measured, OVERRIDES))
    for statistic in ("mean", "p50", "p90", "p99"):
        assert comparison.error("ttft", statistic) == pytest.approx(-1 / 11, abs=1e-12)
        assert comparison.error("e2e", statistic) == 0
    assert comparison.per_request["ttft"].mdape == pytest.approx(1 / 11, abs=1e-12)
    assert comparison.ks["ttft"].ks > 0
    assert comparison.error("tpot", "mean") > 0  # what TTFT takes, the further tokens lack


def test_errors_are_positive_where_the_simulation_is_slower() -> None:
    measured = small()
    slower = replace(measured, ttft_s=2 * measured.ttft_s, e2e_s=measured.e2e_s + measured.ttft_s)
    comparison = Comparison(measured, slower)
    assert comparison.error("ttft", "p50") == pytest.approx(1.0)
    assert comparison.error("tpot", "mean") == pytest.approx(0.0)
    assert comparison.error("throughput", "requests") < 0


@given(SAMPLES, SAMPLES)
def test_distances_are_symmetric_and_from_0_to_1(first: np.ndarray, second: np.ndarray) -> None:
    there, back = distance(first, second), distance(second, first)
    assert there.ks == back.ks
    assert 0 <= there.ks <= 1
    assert (there.measured_n, there.simulated_n) == (back.simulated_n, back.measured_n)


@given(SAMPLES, st.floats(1e-3, 1e3))
def test_distances_do_not_depend_on_the_unit(sample: np.ndarray, scale: float) -> None:
    other = sample[::-1] * 1.5
    assert distance(sample * scale, other * scale).ks == pytest.approx(distance(sample, other).ks, abs=0.1)
    assert distance(sample, sample).ks == 0


@given(st.floats(1e-2, 1e2), st.floats(1e-2, 1e2))
def test_an_error_is_what_the_measured_figure_misses_of_the_simulated(
    measured: float, simulated: float
) -> None:
    assert measured * (1 + relative_error(measured, simulated)) == pytest.approx(simulated, rel=1e-9)


def test_the_load_of_a_request_counts_it_and_those_under_way() -> None:
    run = small(4)
    assert in_flight(run).tolist() == [1, 1, 1, 1]
    long = replace(run, e2e_s=np.array([2.5, 10.0, 0.5, 1.0]))
    assert in_flight(long).tolist() == [1, 2, 3, 2]


def test_requests_that_a_replay_drops_are_counted_and_in_no_figure() -> None:
    measured = small()
    long = replace(measured, input_tokens=np.where(measured.output_tokens == 5, 5000, measured.input_tokens))
    comparison = compare(long, replay(long, [*OVERRIDES, "scheduler.max_model_len=4096"]))
    assert comparison.simulated.failed == 1
    assert comparison.ks["ttft"].simulated_n == comparison.ks["ttft"].measured_n - 1
    assert comparison.by_load().n.sum() == measured.requests - 1


def test_several_replays_are_the_same_on_one_process_and_on_two(result: Result) -> None:
    measured: list[Measured] = [observed(result), small()]
    scenario = replayed_base()
    for one, two in zip(simulated(scenario, measured), simulated(scenario, measured, jobs=2), strict=True):
        assert one.run.ttft_s.tolist() == two.run.ttft_s.tolist()


def replayed_base() -> Any:
    from servesim.validate.replay import base

    return base(OVERRIDES)


def test_a_replay_has_the_traffic_of_the_run_alone() -> None:
    with pytest.raises(ConfigError) as caught:
        replay(small(), [*OVERRIDES, "workload.requests=5", "workload/arrivals=gamma", "horizon_s=3"])
    assert [problem.path for problem in caught.value.problems] == [
        "workload.requests=5",
        "workload/arrivals=gamma",
        "horizon_s=3",
    ]


def test_a_replay_is_described_without_its_requests() -> None:
    said = replayed(replayed_base(), small()).as_dict()["workload"]
    assert said == {"kind": "replay", "source": "small", "requests": 12, "at_once": False}
