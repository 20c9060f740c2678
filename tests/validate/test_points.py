"""Tables of closed-loop points: their spellings, what is missing, and one simulated run each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from servesim import run
from servesim.check import ConfigError
from servesim.scenario import Scenario
from servesim.sweeps.point import Outcome
from servesim.validate.closed_loop import Simulated, at_point, bases, scored, simulate, simulate_points
from servesim.validate.points import Point, Points, is_points, read_points
from servesim.validate.readers.content import read_content
from tests.shared import shared_data
from tests.validate.runs import OVERRIDES, write_csv

ROWS: list[dict[str, Any]] = [
    {"isl": 200, "osl": 20, "concurrency": users, "tp": tp, "mean_ttft_ms": 50.0, "tpot_ms": 10.0}
    for tp in (1, 2)
    for users in (1, 4)
]
SIZELESS = [text for text in OVERRIDES if "tensor_parallel_size" not in text]


def problems(path: Path, **how: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read_points(path, **how)
    return [str(problem) for problem in caught.value.problems]


def test_columns_are_known_by_several_spellings(tmp_path: Path) -> None:
    rows = [
        {
            "tp_size": 4.0,
            "conc": 8,
            "input_len": 1000,
            "output_len": 100,
            "silicon_ttft_ms": 120.0,
            "median_tpot_ms": 11.0,
            "E2E latency p99 (s)": 2.0,
            "output_tok_s": 500,
            "request_throughput": 5,
        }
    ]
    points = read_points(write_csv(tmp_path / "points.csv", rows))
    assert points.points == [
        Point(
            line=2,
            concurrency=8,
            isl=1000,
            osl=100,
            tp=4,
            measured={
                ("ttft", "mean"): pytest.approx(0.12),
                ("tpot", "p50"): pytest.approx(0.011),
                ("throughput", "output_tokens"): 500.0,
                ("throughput", "requests"): 5.0,
            },
        )
    ]


def test_missing_values_are_left_out_and_counted(tmp_path: Path) -> None:
    rows = [dict(row) for row in ROWS]
    rows[0]["tpot_ms"] = ""
    rows[1]["mean_ttft_ms"] = rows[1]["tpot_ms"] = ""
    points = read_points(write_csv(tmp_path / "points.csv", rows))
    assert len(points.points) == 3
    assert ("tpot", "mean") not in points.points[0].measured
    assert points.notes == (
        "1 of 4 rows have nothing measured: left out",
        "1 of 3 rows with something measured lack tpot.mean",
    )


def test_lengths_that_the_table_lacks_are_given_once(tmp_path: Path) -> None:
    rows = [{name: row[name] for name in ("concurrency", "mean_ttft_ms")} for row in ROWS]
    path = write_csv(tmp_path / "points.csv", rows)
    assert {(point.isl, point.osl, point.tp) for point in read_points(path, isl=10, osl=5).points} == {
        (10, 5, None)
    }
    assert [text.split(":")[0] for text in problems(path)] == ["--isl", "--osl"]
    full = write_csv(tmp_path / "full.csv", ROWS)
    assert [text.split(":")[0] for text in problems(full, isl=10)] == ["--isl = 10"]


def test_conditions_take_rows(tmp_path: Path) -> None:
    points = read_points(write_csv(tmp_path / "points.csv", ROWS), {"tp": "2"})
    assert [point.line for point in points.points] == [4, 5]


def test_every_wrong_cell_is_listed(tmp_path: Path) -> None:
    rows = [dict(row) for row in ROWS]
    rows[0]["concurrency"], rows[1]["isl"], rows[2]["tp"], rows[3]["tpot_ms"] = "many", 0, 1.5, -3
    assert sorted(text.split(" = ")[0] for text in problems(write_csv(tmp_path / "points.csv", rows))) == [
        "points.csv, line 2, concurrency",
        "points.csv, line 3, isl",
        "points.csv, line 4, tp",
        "points.csv, line 5, tpot_ms",
    ]


def test_a_table_of_requests_is_none_of_points(tmp_path: Path) -> None:
    rows = [{"sent_s": 0, "input": 1, "output": 2, "ttft": 1}]
    assert not is_points(read_content(write_csv(tmp_path / "requests.csv", rows)))
    assert is_points(read_content(write_csv(tmp_path / "points.csv", ROWS)))


def test_points_simulated_by_themselves_have_no_error(tmp_path: Path) -> None:
    points = read_points(write_csv(tmp_path / "points.csv", ROWS))
    measured = []
    for point in points.points:
        scenario = bases(points, SIZELESS)[point.tp]
        assert isinstance(scenario, Scenario)
        assert scenario.deployments()[0].gpus == point.tp
        summary = run(at_point(scenario, point)).summary
        figures = {
            (name, "mean"): summary["latency"][f"{name}_s"]["mean"] for name in ("ttft", "tpot", "e2e")
        }
        rates = {("throughput", "output_tokens"): summary["throughput"]["output_tokens_per_s"]}
        measured.append(point._replace(measured={**figures, **rates}))
    exact = points._replace(points=measured)
    simulated = simulate_points(exact, SIZELESS, jobs=1)
    assert simulated.clean
    assert len(simulated.table) == 16
    assert (simulated.table.error == 0).all()
    slower = [p._replace(measured={f: v * 1.25 for f, v in p.measured.items()}) for p in measured]
    scores = simulate_points(exact._replace(points=slower), SIZELESS, jobs=1).scores()
    for row in scores.values():
        assert (row.n, row.mape, row.mdape, row.bias) == (4, *(pytest.approx(x) for x in (0.2, 0.2, -0.2)))


def test_parameters_can_be_varied_over_the_same_points(tmp_path: Path) -> None:
    points = read_points(write_csv(tmp_path / "points.csv", ROWS[:2]))
    found = bases(points, SIZELESS)
    slow = {
        tp: replace(each, gpu=replace(each.gpu, hbm_bytes_per_s=each.gpu.hbm_bytes_per_s / 2))
        for tp, each in found.items()
        if isinstance(each, Scenario)
    }
    fast, late = (simulate(points, scenarios, jobs=1).table.simulated for scenarios in (found, slow))
    assert (late > fast).all()


def test_overrides_of_tensor_parallelism_and_of_how_users_start_count(tmp_path: Path) -> None:
    points = read_points(write_csv(tmp_path / "points.csv", ROWS))
    found = bases(points, [*OVERRIDES, "workload.arrivals.ramp_up_s=3"])
    assert {each.deployments()[0].gpus for each in found.values() if isinstance(each, Scenario)} == {1}
    scenario = next(each for each in found.values() if isinstance(each, Scenario))
    assert at_point(scenario, points.points[1]).as_dict()["workload"]["arrivals"]["ramp_up_s"] == 3
    with pytest.raises(ConfigError, match="has its own traffic"):
        simulate_points(points, [*OVERRIDES, "workload.arrivals.concurrency=3"])


def test_points_that_cannot_run_are_told_and_the_others_run(tmp_path: Path) -> None:
    rows = [{**ROWS[0], "tp": tp} for tp in (1, 7)]
    simulated = simulate_points(read_points(write_csv(tmp_path / "points.csv", rows)), SIZELESS, jobs=1)
    assert list(simulated.failed) == [3]
    assert not simulated.clean
    assert set(simulated.table.line) == {2}
    with pytest.raises(ConfigError):
        simulate_points(read_points(write_csv(tmp_path / "points.csv", rows[1:])), SIZELESS, jobs=1)


def test_scores_are_of_known_errors() -> None:
    scores = scored(np.array([0.1, -0.3, np.nan]))
    assert scores.n == 2
    assert (scores.mape, scores.mdape, scores.bias) == pytest.approx((0.2, 0.2, -0.1))
    assert scored(np.array([np.nan])).n == 0


def test_scores_are_told_by_group_in_ascending_order(tmp_path: Path) -> None:
    points = Points("x", [Point(n, 10 // n, 1, 1, None, {("ttft", "mean"): 1.0}) for n in (1, 2)], ())
    outcomes = [Outcome("clean", None, {"latency.ttft_s.mean": value}) for value in (1.5, 0.5)]
    simulated = Simulated(points, outcomes, None)  # type: ignore[arg-type]
    assert [(key[2], row.bias) for key, row in simulated.scores("concurrency").items()] == [
        (5, -0.5),
        (10, 0.5),
    ]


def test_the_shared_tables_are_read() -> None:
    points = read_points(shared_data("serving", "h100_closed_loop.csv"), {"backend": "vllm"})
    assert len(points.points) == 90
    assert points.figures == [("ttft", "mean"), ("tpot", "mean")]
    assert {point.tp for point in points.points} == {2, 4, 8}
    path = shared_data("serving", "llama70b_h100_10k1k_disagg_and_aggregated.csv")
    points = read_points(path, {"mode": "agg"}, isl=10_000, osl=1000)
    assert [point.concurrency for point in points.points] == [1, 8, 32, 64, 128, 256]
    assert "4 of 6 rows lack ttft.mean" in points.notes


def test_users_of_a_point_start_spread_over_about_the_time_of_a_request() -> None:
    """A request of a lone user takes as long as its first token and its further ones."""
    scenario = bases(Points("made", [Point(2, 1, 200, 50, 1, {})], ()), OVERRIDES)[1]
    assert isinstance(scenario, Scenario)
    point = Point(2, 1, 200, 50, 1, {})
    one = run(at_point(scenario, point, start="burst")).summary["latency"]["e2e_s"]["mean"]

    def ramp_up_s(base: Scenario, start: str) -> float:
        return at_point(base, point, start=start).workload.arrivals.ramp_up_s  # type: ignore[union-attr]

    assert ramp_up_s(scenario, "steady") == pytest.approx(one, rel=0.1)
    assert ramp_up_s(scenario, "burst") == 0
    users = replace(scenario.workload.arrivals, ramp_up_s=7.0)  # type: ignore[union-attr,arg-type,type-var]
    own = replace(scenario, workload=replace(scenario.workload, arrivals=users))  # type: ignore[arg-type]
    assert ramp_up_s(own, "steady") == ramp_up_s(own, "burst") == 7
