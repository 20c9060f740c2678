"""What Python callers hand over: other objects than components are told with their place."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from servesim import ConfigError, load, run
from servesim.cluster.view import PoolView
from servesim.workload.arrivals import Poisson

SCENARIO = load(
    "model=llama3.1-8b",
    "cluster.tensor_parallel_size=1",
    "calibration=roofline",
    "workload.requests=20",
    "workload/lengths=fixed",
)
PARTS = ("model", "gpu", "scheduler", "cluster", "calibration", "workload", "router", "slo", "pricing")


def refusals(**changes: Any) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        run(replace(SCENARIO, **changes))
    return {problem.path: problem.message for problem in caught.value.problems}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("other", [None, "x", 3, Poisson(1.0), Poisson])
def test_each_part_is_of_its_kind(part: str, other: Any) -> None:
    assert set(refusals(**{part: other})) == {part}


def test_all_that_is_wrong_is_told_at_once() -> None:
    assert set(refusals(**dict.fromkeys(PARTS))) == set(PARTS)


@pytest.mark.parametrize("part", ["board_power", "engine_overhead"])
def test_another_component_does_not_pass_for_one(part: str) -> None:
    assert set(refusals(**{part: Poisson(1.0)})) == {part}
    assert set(refusals(**{part: SCENARIO.gpu})) == {part}


@pytest.mark.parametrize("other", [None, "x", 3, SCENARIO.gpu])
def test_so_are_parts_of_parts(other: Any) -> None:
    for name in ("arrivals", "lengths"):
        assert set(refusals(workload=replace(SCENARIO.workload, **{name: other}))) == {f"workload.{name}"}
    if other is not None and other is not SCENARIO.gpu:
        assert set(refusals(cluster=replace(SCENARIO.cluster, gpu=other))) == {"cluster.gpu"}  # type: ignore[type-var]


def test_a_protocol_is_told_by_what_it_asks_for() -> None:
    assert refusals(router=3)["router"] == "must be an object with start"


def test_whole_numbers_of_numpy_are_whole_numbers() -> None:
    lengths = replace(SCENARIO.workload.lengths, input=np.int64(80), output=np.int32(9))  # type: ignore[union-attr,type-var]
    scenario = replace(SCENARIO, workload=replace(SCENARIO.workload, lengths=lengths), seed=np.int64(0))  # type: ignore[type-var,arg-type]
    summary = run(scenario).summary
    said = summary["scenario"]["workload"]["lengths"]
    assert (said["input"], said["output"], summary["scenario"]["seed"]) == (80, 9, 0)
    assert type(said["input"]) is int
    again = run(replace(scenario, seed=0)).summary
    assert summary["latency"] == again["latency"]
    wrong = replace(lengths, input=np.bool_(True), output=np.float32("nan"))
    assert len(refusals(workload=replace(SCENARIO.workload, lengths=wrong))) == 2  # type: ignore[type-var]


@pytest.mark.parametrize("override", [None, 3, ["seed=1"]])
def test_overrides_are_strings(override: Any) -> None:
    with pytest.raises(TypeError, match="overrides are strings"):
        load(override)


def test_a_folder_may_be_a_string(tmp_path: Path) -> None:
    run(SCENARIO, str(tmp_path)).save(tmp_path)
    assert (tmp_path / "requests.parquet").is_file()


class Picks:
    """A router of the user's own that always picks the same."""

    def __init__(self, pick: Any) -> None:
        self.pick = pick

    def start(self, view: PoolView, rng: np.random.Generator) -> Any:
        return lambda request: self.pick


@pytest.mark.parametrize("pick", [0.5, 1.0, "a", None, True, np.bool_(True)])
def test_a_router_picks_whole_numbers(pick: Any) -> None:
    with pytest.raises(TypeError, match="a replica is a whole number from 0 to 1"):
        run(replace(SCENARIO, router=Picks(pick)))


def test_a_router_may_pick_numbers_of_numpy() -> None:
    result = run(replace(SCENARIO, router=Picks(np.int64(1))))
    assert set(result.requests.replica) == {1}
    with pytest.raises(IndexError, match="picked replica 2 of 2"):
        run(replace(SCENARIO, router=Picks(np.int64(2))))
