"""The hash of a point, its command, and its outcome as a line."""

import dataclasses
import pickle
from pathlib import Path
from typing import Any

import pytest

from servesim import load, run
from servesim.config.expansion import Expansion
from servesim.config.groups import Groups
from servesim.sweeps.point import FAILED, Hashes, Outcome, as_line, of_line, simulate
from servesim.workload.trace import Trace

BASE = ["model=llama3.1-8b", "workload.requests=20"]
CHANGES = [
    "seed=1",
    "steady=true",
    "horizon_s=9",
    "gpu=h200-sxm",
    "gpu.usd_per_hour=9",
    "calibration=roofline",
    "calibration=h200-sxm-vllm",
    "engine_overhead=trtllm-1.0",
    "scheduler=static",
    "scheduler.block_size=32",
    "cluster.replicas=1",
    "router=round_robin",
    "workload.requests=21",
    "workload/arrivals=constant",
    "workload/lengths=code",
    "slo.ttft_s=9",
    "pricing.usd_per_gpu_hour=1",
    "ignore_capacity=true",
]
EXPANSION = Expansion(Groups.of(None))


def scenario(*more: str) -> Any:
    built = EXPANSION.scenario([*BASE, *more])
    assert not built.refused
    return built.scenario


def test_whatever_changes_a_scenario_changes_its_hash() -> None:
    hashes = Hashes()
    found = [hashes.of(scenario(*more)) for more in ([], *([change] for change in CHANGES))]
    assert len(set(found)) == len(CHANGES) + 1


@pytest.mark.parametrize("more", [[], ["scheduler=disaggregated"], ["workload/lengths=fixed"]])
def test_equal_scenarios_have_equal_hashes_wherever_they_were_made(more: list[str]) -> None:
    first = Hashes().of(scenario(*more))
    assert Hashes().of(load(*BASE, *more)) == first
    assert Hashes().of(pickle.loads(pickle.dumps(scenario(*more)))) == first
    used = scenario(*more)
    run(used)
    assert Hashes().of(dataclasses.replace(used)) == first


def test_the_hash_knows_the_coefficients_behind_step_times() -> None:
    before = scenario("calibration=h100-sxm-vllm")
    gemm = {**before.calibration.gemm, "bf16": {**before.calibration.gemm["bf16"], "launch_s": 1.0}}
    after = dataclasses.replace(before, calibration=dataclasses.replace(before.calibration, gemm=gemm))
    assert Hashes().of(before) != Hashes().of(after)


def test_an_outcome_is_a_line_and_back() -> None:
    outcome, lasting = simulate(scenario("calibration=roofline"))
    assert lasting
    assert of_line(as_line(outcome)) == outcome
    assert "\n" not in as_line(Outcome.failed("a\nb"))


@pytest.mark.parametrize("line", ["", "{", "[]", "{}", '{"status": "clean"}', "7"])
def test_what_is_no_outcome_is_refused(line: str) -> None:
    with pytest.raises(ValueError):
        of_line(line)


def test_a_scenario_that_cannot_run_fails_with_its_problems() -> None:
    broken = dataclasses.replace(scenario(), horizon_s=-1.0)
    outcome, lasting = simulate(broken)
    assert (outcome.status, outcome.figures, lasting) == (FAILED, {}, True)
    assert "horizon_s = -1.0" in str(outcome.error)


def test_a_trace_counts_by_what_its_file_and_its_tokenizer_hold(tmp_path: Path) -> None:
    trace, tokenizer = tmp_path / "trace.json", tmp_path / "tokenizer.json"
    workload = Trace(str(trace), tokenizer=str(tokenizer))
    replayed = dataclasses.replace(scenario(), workload=workload)
    found = set()
    for texts in (("a", "b"), ("c", "b"), ("c", "d"), ("a", "b")):
        for path, text in zip((trace, tokenizer), texts, strict=True):
            path.write_text(text)
        found.add(Hashes().of(replayed))
    assert len(found) == 3
