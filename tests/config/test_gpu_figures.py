"""A GPU by a few figures of its datasheet: what follows from them, and what has to be given."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from servesim import ConfigError, load
from servesim.check import check
from servesim.config.gpu_figures import IDLE_SHARE, derived
from servesim.cost.gpu import Gpu
from tests.cost.shipped import GPUS, values

#: The least that describes a GPU: seven lines of a datasheet.
FEW = {
    "name": "mine",
    "memory_bytes": 32 * 2**30,
    "hbm_bytes_per_s": 1.0e12,
    "bf16_flops_per_s": 200e12,
    "nvlink_bytes_per_s": 100e9,
    "max_w": 300.0,
    "usd_per_hour": 1.0,
}
SMALL = ["model=llama3.1-8b", "cluster.tensor_parallel_size=1", "cluster.replicas=1"]


def folder(path: Path, said: dict[str, Any]) -> Path:
    (path / "gpu").mkdir(exist_ok=True)
    (path / "gpu" / "mine.yaml").write_text(yaml.safe_dump(said))
    return path


def filled(said: dict[str, Any]) -> dict[str, Any]:
    return said | {one.key: one.value for one in derived(said)}


@pytest.mark.parametrize("name", GPUS)
def test_nothing_is_derived_of_a_gpu_that_says_all(name: str) -> None:
    assert list(derived(values("gpu", name))) == []


@given(left_out=st.sets(st.sampled_from([key for key in values("gpu", "h100-sxm") if key not in FEW])))
def test_whatever_is_left_out_of_the_rest_a_sound_gpu_comes_of_it(left_out: set[str]) -> None:
    said = {key: value for key, value in values("gpu", "h100-sxm").items() if key not in left_out}
    gpu = Gpu(**filled(said))
    check(gpu)
    assert all(getattr(gpu, key) == value for key, value in said.items())
    assert {one.key for one in derived(said)} == left_out - {"profile_of"}


def test_few_figures_and_what_follows_from_them(tmp_path: Path) -> None:
    scenario = load("gpu=mine", *SMALL, config_dir=folder(tmp_path, FEW))
    gpu = scenario.gpu
    assert (gpu.memory_bytes, gpu.fp8_flops_per_s, gpu.idle_w) == (
        32 * 2**30,
        None,
        round(IDLE_SHARE * 300, 1),
    )
    assert gpu.peak_flops("fp8") == gpu.bf16_flops_per_s
    (note,) = scenario.notes
    assert note.startswith("mine, not in its file: fp8_flops_per_s = null (no FP8 rate is given")
    assert all(one.key in note for one in derived(FEW))


def test_without_nvlink_gpus_reach_each_other_over_pcie(tmp_path: Path) -> None:
    said = {key: value for key, value in FEW.items() if key != "nvlink_bytes_per_s"}
    gpu = load("gpu=mine", *SMALL, config_dir=folder(tmp_path, said | {"pcie_bytes_per_s": 64e9})).gpu
    assert (gpu.nvlink_bytes_per_s, gpu.nvlink_latency_s) == (64e9, 1.0e-6)


def test_what_cannot_be_derived_is_listed_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load("gpu=mine", config_dir=folder(tmp_path, {"name": "mine", "usd_per_hours": 3}))
    found = [str(problem) for problem in caught.value.problems]
    for key in FEW.keys() - {"name"}:
        assert any(line.startswith(f"gpu.{key}: is missing") for line in found)
    assert any("did you mean gpu.usd_per_hour?" in line for line in found)
    assert not any(line.startswith("gpu.idle_w") for line in found)


@pytest.mark.parametrize("value", [None, "much", float("nan"), -1.0])
@pytest.mark.parametrize("key", ["max_w", "pcie_bytes_per_s"])
def test_what_follows_from_a_wrong_figure_is_not_told(key: str, value: Any, tmp_path: Path) -> None:
    said = {name: figure for name, figure in FEW.items() if name != "nvlink_bytes_per_s"}
    said = said | {"pcie_bytes_per_s": 64e9, key: value}
    with pytest.raises(ConfigError) as caught:
        load(
            "gpu=mine", *SMALL, config_dir=folder(tmp_path, {k: v for k, v in said.items() if v is not None})
        )
    paths = [problem.path for problem in caught.value.problems]
    assert paths == [f"gpu.{key}"] or (key, value, paths) == (
        "pcie_bytes_per_s",
        None,
        ["gpu.nvlink_bytes_per_s"],
    )


def test_a_figure_that_is_typed_wins_and_is_not_noted(tmp_path: Path) -> None:
    scenario = load("gpu=mine", "gpu.idle_w=20", *SMALL, config_dir=folder(tmp_path, FEW))
    assert scenario.gpu.idle_w == 20
    assert "idle_w" not in scenario.notes[0]


def test_a_pool_with_a_gpu_of_its_own_takes_nothing_from_the_other_pools(tmp_path: Path) -> None:
    few = folder(tmp_path, FEW)
    overrides = ["scheduler=disaggregated", "model=llama3.1-8b", "cluster.prefill.gpu=mine"]
    scenario = load(*overrides, config_dir=few)
    prefill = scenario.cluster.prefill.gpu  # type: ignore[union-attr]
    assert (prefill.name, prefill.fp8_flops_per_s, prefill.profile_of) == ("mine", None, None)
    assert scenario.gpu.name == "h100-sxm"


def test_a_profile_scaled_to_few_figures_is_all_extrapolated(tmp_path: Path) -> None:
    import servesim

    said = FEW | {"profile_of": "a100-sxm-80gb"}
    scenario = load("gpu=mine", *SMALL, "workload.requests=20", config_dir=folder(tmp_path, said))
    summary = servesim.run(scenario).summary
    assert [one["name"] for one in summary["scenario"]["calibration"]["profiles"]] == ["a100-sxm-80gb-vllm"]
    host = sum(summary["calibration"]["operations"]["host"].values())
    assert summary["calibration"]["extrapolated"] == pytest.approx(1 - host, abs=0.05)


@given(factor=st.floats(1.1, 4))
def test_a_faster_gpu_of_few_figures_is_no_slower(factor: float) -> None:
    names = ("hbm_bytes_per_s", "bf16_flops_per_s", "nvlink_bytes_per_s")
    fast = FEW | {name: FEW[name] * factor for name in names}  # type: ignore[operator]
    slow_s, fast_s = (_step_s(Gpu(**filled(said))) for said in (FEW, fast))
    assert fast_s <= slow_s


def _step_s(gpu: Gpu) -> float:
    from servesim.cost.roofline import Roofline
    from tests.cost.shipped import model

    step = Roofline().step_time(
        model("llama3.1-8b"), gpu, 2, "auto", max_num_seqs=16, max_num_batched_tokens=64
    )
    return step.mixed(8, 8000, [(32, 0)])
