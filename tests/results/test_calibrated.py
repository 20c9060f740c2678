"""The shares of simulated time that are calibrated, in the summary of a run and on the screen."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console

from servesim import load, run
from servesim.cost.coverage import HOST
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
    assert "scaled to" not in shown(told)


def test_another_datasheet_is_extrapolated() -> None:
    told = summary("gpu.hbm_bytes_per_s=3e12")
    assert told["calibration"]["extrapolated"] > 0.7


def test_a_gpu_of_ones_own_is_scaled_from_the_nearest_and_every_summary_says_so(tmp_path: Path) -> None:
    """A third of an H200's bandwidth: steps take longer, and count as outside of what was fitted."""
    (tmp_path / "gpu").mkdir()
    slower = {"hbm_bytes_per_s": 1.6e12, "nvlink_bytes_per_s": 3e11}
    said = {"defaults": ["h200-sxm", "_self_"], "name": "my-gpu", "profile_of": None, **slower}
    (tmp_path / "gpu" / "my-gpu.yaml").write_text(yaml.safe_dump(said))
    scenario = load("gpu=my-gpu", "workload.requests=50", config_dir=tmp_path)
    result = run(scenario)
    result.save(tmp_path / "run")
    for told in (result.summary, json.loads((tmp_path / "run" / "summary.json").read_text())):
        kernels = {name: each for name, each in told["calibration"]["operations"].items() if name != HOST}
        assert {"attention", "qkv", "lm_head", "small_kernels"} <= kernels.keys()
        for each in kernels.values():
            assert each["calibrated"] == each["interpolated"] == 0 < each["extrapolated"]
        assert [one["name"] for one in told["scenario"]["calibration"]["profiles"]] == ["h100-sxm-vllm"]
        words = shown(told)
        assert "of the time is outside the calibrated ranges: " in words
        assert "as fitted in h100-sxm-vllm (vllm 0.24.0), scaled to my-gpu by the datasheet" in words
    own, known = (one.deployments()[0].step_time for one in (scenario, load("gpu=h200-sxm")))
    assert 1.5 < own.decode(1, 1000)[0] / known.decode(1, 1000)[0] < 3


def test_a_kv_cache_without_a_table_is_extrapolated() -> None:
    """On the A100, which the package has no FP8 cache of."""
    formats = ("model.weights_dtype=bf16", "scheduler.kv_cache_dtype=fp8")
    told = summary("gpu=a100-sxm-80gb", *formats)["calibration"]
    assert told["operations"]["attention"]["extrapolated"] > 0
    assert told["operations"]["attention"]["calibrated"] == 0
    assert told["operations"]["gate_up"]["extrapolated"] == 0


def test_the_roofline_has_no_shares() -> None:
    told = summary("calibration=roofline")["calibration"]
    assert told == {"name": "roofline", **dict.fromkeys(list(told)[1:])}
