"""Which profiles `calibration=auto` finds, and where."""

from pathlib import Path

import pytest
import yaml

from servesim import load
from servesim.check import ConfigError
from servesim.config.profiles import with_profiles
from servesim.cost.auto import Auto
from servesim.cost.profile import Profile
from servesim.scenario import Scenario
from tests.cost.fitted import SAID


def names(scenario: Scenario) -> list[str]:
    assert isinstance(scenario.calibration, Auto)
    return list(scenario.calibration.profiles)


def own_folder(folder: Path, **changes: str) -> Path:
    """Write the hand-made profile into a folder laid out as conf/."""
    values = {"kind": "profile", **SAID, **changes}
    (folder / "calibration").mkdir(exist_ok=True)
    path = folder / "calibration" / f"{values['gpu']}-{values['engine']}.yaml"
    path.write_text(yaml.safe_dump(values))
    return folder


def test_each_pool_has_the_profile_of_its_gpu() -> None:
    assert names(load()) == ["h100-sxm-vllm"]
    assert names(load("gpu=h200-sxm", "engine_overhead=trtllm-1.0")) == ["h200-sxm-trtllm"]
    mixed = load("scheduler=disaggregated", "cluster.prefill.gpu=h200-sxm")
    assert names(mixed) == ["h100-sxm-vllm", "h200-sxm-vllm"]
    prefill, decode = mixed.deployments()
    assert prefill.step_time.decode(1, 1) < decode.step_time.decode(1, 1)


def test_a_gpu_that_builds_on_another_takes_its_profile() -> None:
    scenario = load("gpu.name=mine", "gpu.bf16_flops_per_s=312e12", "gpu.hbm_bytes_per_s=2.039e12")
    assert names(scenario) == ["h100-sxm-vllm"]
    assert names(load("gpu.name=mine", "gpu.profile_of=b200-sxm")) == ["b200-sxm-vllm"]


def test_a_profile_that_is_not_there_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"gpu\.profile_of = 'v100': has no profile at hand; .*h100-sxm"):
        load("gpu.name=mine", "gpu.profile_of=v100")
    load("gpu.name=mine", "gpu.profile_of=v100", "calibration=roofline")


def test_a_gpu_of_ones_own_takes_the_nearest_of_all() -> None:
    scenario = load("gpu.name=mine", "gpu.profile_of=null")
    assert len(names(scenario)) > 1
    own, known = (one.deployments()[0].step_time for one in (scenario, load()))
    assert own.decode(8, 8000) == known.decode(8, 8000)


def test_a_profile_of_ones_own_is_chosen_by_name_or_by_engine(tmp_path: Path) -> None:
    folder = own_folder(tmp_path)
    named = load("calibration=h100-sxm-made", config_dir=folder).calibration
    assert isinstance(named, Profile)
    assert named.name == "h100-sxm-made"
    assert names(load("engine_overhead.engine=made", config_dir=folder)) == ["h100-sxm-made"]


def test_the_first_folder_that_has_a_profile_is_heard(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for folder, version in ((one, "1"), (other, "2")):
        folder.mkdir()
        own_folder(folder, engine_version=version)
    values = {
        "calibration": {"kind": "auto"},
        "engine_overhead": {"engine": "made"},
        "gpu": {"name": "h100-sxm"},
        "cluster": {"replicas": 1},
    }
    found = with_profiles(values, [one, other])["calibration"]["profiles"]
    assert found["h100-sxm-made"]["engine_version"] == "1"


def test_a_profile_is_changed_by_overrides() -> None:
    slow = load("calibration=h100-sxm-vllm", "calibration.gemm.fp8.launch_s=1e-3")
    assert slow.deployments()[0].step_time.decode(8, 8000) > load().deployments()[0].step_time.decode(8, 8000)


def test_an_engine_without_profiles_is_refused() -> None:
    with pytest.raises(ConfigError, match="no profile for the engine nobodys"):
        load("engine_overhead.engine=nobodys")
    load("engine_overhead.engine=nobodys", "calibration=roofline")


def test_wrong_coefficients_are_told_with_their_place(tmp_path: Path) -> None:
    folder = own_folder(tmp_path)
    with pytest.raises(ConfigError, match=r"calibration.gemm.bf16.tile_rate = -1.* must be at least 1e-09"):
        load("calibration=h100-sxm-made", "calibration.gemm.bf16.tile_rate=-1", config_dir=folder)


@pytest.mark.parametrize(
    ("written", "line"),
    [
        (b"", "calibration.profiles.mine-vllm: must be a profile"),
        (b"[1]", "calibration.profiles.mine-vllm = [1]: must be a profile"),
        (b"3", "calibration.profiles.mine-vllm = 3: must be a profile"),
        (b"\xb3\xff\x00", "mine-vllm.yaml: is not YAML"),
        (b"a: [", "mine-vllm.yaml: is not YAML"),
        (b"nonsense: 1", "calibration.profiles.mine-vllm.nonsense = 1: unknown key"),
    ],
)
def test_a_file_that_is_no_profile_is_refused(written: bytes, line: str, tmp_path: Path) -> None:
    (tmp_path / "calibration").mkdir()
    (tmp_path / "calibration" / "mine-vllm.yaml").write_bytes(written)
    with pytest.raises(ConfigError) as caught:
        load("gpu.name=mine", "gpu.profile_of=null", config_dir=tmp_path)
    assert line in str(caught.value)


@pytest.mark.parametrize("profiles", ["null", "{a:3}", "{a:{}}", "[1]", "3"])
def test_profiles_given_by_hand_are_looked_at(profiles: str) -> None:
    with pytest.raises(ConfigError, match=r"calibration\.profiles"):
        load(f"calibration.profiles={profiles}")


@pytest.mark.parametrize("override", ["gpu.name=[1]", "engine_overhead.engine=[1]", "++gpu=3", "++cluster=x"])
def test_what_names_no_profile_is_refused_in_words(override: str) -> None:
    with pytest.raises(ConfigError, match=override.lstrip("+").partition("=")[0]):
        load(override)


def test_a_summary_names_the_profiles_and_their_hashes() -> None:
    told = load().as_dict()["calibration"]
    assert told["kind"] == "auto"
    assert [one["name"] for one in told["profiles"]] == ["h100-sxm-vllm"]
    assert told["profiles"][0]["hash"]
