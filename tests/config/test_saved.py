"""From a summary's configuration back to the pools that the run had."""

import json
from pathlib import Path
from typing import Any

import pytest

from servesim import ConfigError, load
from servesim.config.saved import saved_deployments

CHOICES = [
    [],
    ["calibration=roofline"],
    ["calibration=h100-sxm-trtllm", "engine_overhead=trtllm-1.0"],
    ["scheduler=static", "model=llama3.1-8b", "cluster.tensor_parallel_size=2"],
    ["scheduler=disaggregated", "cluster.prefill.gpu=h200-sxm", "cluster.decode.replicas=3"],
    ["gpu=l40s", "model=llama3.1-8b", "gpu.usd_per_hour=1", "ignore_capacity=true"],
    ["workload/arrivals=schedule", "workload/lengths=code", "router=random"],
]


def saved(*overrides: str) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(json.dumps(load(*overrides).as_dict()))
    return said


@pytest.mark.parametrize("overrides", CHOICES, ids=" ".join)
def test_pools_come_back_with_the_same_step_times(overrides: list[str]) -> None:
    had, got = load(*overrides).deployments(), saved_deployments(saved(*overrides))
    for one, other in zip(had, got, strict=True):
        for name in (
            "role",
            "gpu",
            "replicas",
            "tensor_parallel_size",
            "kv_blocks",
            "max_model_len",
            "sheet",
        ):
            assert getattr(one, name) == getattr(other, name)
        assert one.step_time.mixed(7, 9000, [(300, 40)]) == other.step_time.mixed(7, 9000, [(300, 40)])


def test_traffic_and_router_need_not_be_at_hand() -> None:
    said = saved()
    said["workload"] = {"kind": "trace", "path": "gone.csv"}
    said["router"] = {"kind": "two_choices"}
    assert len(saved_deployments(said)) == 1


def test_a_profile_that_is_not_the_run_s_is_refused() -> None:
    said = saved("calibration=h100-sxm-vllm")
    said["calibration"]["hash"] = "0"
    with pytest.raises(ConfigError, match="h100-sxm-vllm': has changed since the run"):
        saved_deployments(said)
    said["calibration"]["name"] = "gone"
    with pytest.raises(ConfigError, match="gone': is not in conf/calibration"):
        saved_deployments(said)


def test_a_profile_of_the_user_s_own_is_found_in_its_folder(tmp_path: Path) -> None:
    (tmp_path / "calibration").mkdir()
    shipped = Path(__file__).parents[2] / "conf" / "calibration" / "h100-sxm-vllm.yaml"
    text = shipped.read_text().replace("launch_s: 2.705e-06", "launch_s: 2.7e-06")
    (tmp_path / "calibration" / "mine.yaml").write_text(text.replace("name: h100-sxm-vllm", "name: mine"))
    said = json.loads(json.dumps(load("calibration=mine", config_dir=tmp_path).as_dict()))
    assert len(saved_deployments(said, tmp_path)) == 1
    with pytest.raises(ConfigError, match="is not in conf/calibration"):
        saved_deployments(said)
