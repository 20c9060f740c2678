"""A folder of the user's own: its files stand in place of shipped ones of the same name."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from servesim import ConfigError, load
from servesim.cli import main
from servesim.config.expansion import Expansion
from servesim.config.groups import Groups, conf_dir
from servesim.cost.auto import Auto
from servesim.cost.profile import Profile

SMALL = "workload.requests=20"


def put(folder: Path, name: str, values: Any) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(values if isinstance(values, str) else yaml.safe_dump(values))
    return path


def shipped(name: str) -> dict[str, Any]:
    values = yaml.safe_load((conf_dir() / name).read_text())
    assert isinstance(values, dict)
    return values


def refusal(folder: Path, *overrides: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(*overrides, config_dir=folder)
    return str(caught.value)


def test_a_gpu_of_ones_own_stands_for_the_shipped_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "mine", "gpu/h100-sxm.yaml", shipped("gpu/h100-sxm.yaml") | {"usd_per_hour": 1234.0})
    assert load(config_dir=tmp_path / "mine").gpu.usd_per_hour == 1234
    assert load("gpu=h200-sxm", config_dir=tmp_path / "mine").gpu == load("gpu=h200-sxm").gpu
    assert load().gpu.usd_per_hour != 1234
    assert main(["--config-dir", "mine", SMALL]) == 0
    assert "$1,234.00 per GPU-hour" in capfd.readouterr().out
    assert main(["--config-dir", "mine", "-m", SMALL, "seed=1,2"]) == 0
    assert "9872.00" in capfd.readouterr().out.replace(",", "")


def test_in_a_study_too(tmp_path: Path) -> None:
    put(tmp_path, "gpu/h100-sxm.yaml", shipped("gpu/h100-sxm.yaml") | {"usd_per_hour": 1234.0})
    built = Expansion(Groups.of(tmp_path), tmp_path).scenario(["gpu=h100-sxm"])
    assert built.scenario == load("gpu=h100-sxm", config_dir=tmp_path)
    assert built.scenario.gpu.usd_per_hour == 1234


def test_a_model_of_ones_own_stands_for_the_shipped_one(tmp_path: Path) -> None:
    put(tmp_path, "model/llama3.1-70b.yaml", shipped("model/llama3.1-70b.yaml") | {"weights_dtype": "bf16"})
    assert load(config_dir=tmp_path).model.weights_dtype == "bf16"


def test_a_profile_of_ones_own_stands_for_the_shipped_one(tmp_path: Path) -> None:
    said = shipped("calibration/h100-sxm-vllm.yaml") | {"engine_version": "mine"}
    put(tmp_path, "calibration/h100-sxm-vllm.yaml", said)
    auto = load(config_dir=tmp_path).calibration
    assert isinstance(auto, Auto)
    assert auto.profiles["h100-sxm-vllm"]["engine_version"] == "mine"
    named = load("calibration=h100-sxm-vllm", config_dir=tmp_path).calibration
    assert isinstance(named, Profile)
    assert named.engine_version == "mine"


def test_a_file_may_build_on_a_shipped_one_of_another_name(tmp_path: Path) -> None:
    put(tmp_path, "gpu/mine.yaml", "defaults: [h100-sxm, _self_]\nusd_per_hour: 1\n")
    mine = load("gpu=mine", config_dir=tmp_path).gpu
    assert (mine.usd_per_hour, mine.name) == (1, "h100-sxm")


@pytest.mark.parametrize("entry", ["h100-sxm", "/gpu/h100-sxm"])
def test_a_file_that_builds_on_itself_is_named(entry: str, tmp_path: Path) -> None:
    path = put(tmp_path, "gpu/h100-sxm.yaml", f"defaults: [{entry}, _self_]\nusd_per_hour: 1\n")
    assert f"{path}: names itself in its defaults" in refusal(tmp_path)
    assert main(["--config-dir", str(tmp_path)]) == 1


def test_files_that_build_on_each_other_are_refused(tmp_path: Path) -> None:
    put(tmp_path, "gpu/a.yaml", "defaults: [b, _self_]\n")
    put(tmp_path, "gpu/b.yaml", "defaults: [a, _self_]\n")
    assert "name each other in a circle" in refusal(tmp_path, "gpu=a")


@pytest.mark.parametrize(
    ("written", "message"), [(b"\xb3\xff\x00", "is not text in UTF-8"), (b"a: [", "is not YAML: ")]
)
def test_a_file_that_cannot_be_read_is_named(written: bytes, message: str, tmp_path: Path) -> None:
    path = put(tmp_path, "gpu/mine.yaml", "")
    path.write_bytes(written)
    assert f"{path}: {message}" in refusal(tmp_path, "gpu=mine")
    assert main(["--config-dir", str(tmp_path), "gpu=mine"]) == 1
