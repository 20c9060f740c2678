"""The shares of simulated time that are calibrated, in the summary of a run and on the screen."""

import io
from typing import Any

import pytest
from rich.console import Console

from servesim import load, run
from servesim.screen.summary import print_summary


def summary(*overrides: str) -> dict[str, Any]:
    return run(load("workload.requests=50", *overrides)).summary


def shown(told: dict[str, Any]) -> str:
    out = Console(file=io.StringIO(), width=300)
    print_summary(told, out)
    return out.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize("scheduler", ["static", "continuous", "disaggregated"])
def test_shares_sum_to_one_over_operations_and_kinds(scheduler: str) -> None:
    told = summary(f"scheduler={scheduler}")["calibration"]
    kinds = ("calibrated", "interpolated", "extrapolated")
    assert sum(told[kind] for kind in kinds) == pytest.approx(1)
    for kind in kinds:
        assert told[kind] == pytest.approx(sum(each[kind] for each in told["operations"].values()))
    assert told["calibrated"] > 0.5


def test_a_format_without_a_table_is_warned_of_by_operation() -> None:
    told = summary("model.weights_dtype=int4")
    assert told["calibration"]["extrapolated"] > 0.3
    assert "outside the calibrated ranges: gate_up" in shown(told)


def test_nothing_is_warned_of_inside_the_ranges() -> None:
    told = summary()
    assert told["calibration"]["extrapolated"] < 0.01
    assert "outside the calibrated ranges" not in shown(told)


def test_a_gpu_without_a_profile_is_extrapolated() -> None:
    told = summary("gpu.hbm_bytes_per_s=3e12")
    assert told["calibration"]["extrapolated"] > 0.7


def test_the_roofline_has_no_shares() -> None:
    told = summary("calibration=roofline")["calibration"]
    assert told == {"name": "roofline", **dict.fromkeys(list(told)[1:])}
