"""Profiles: what is refused, which form stands for which format, and what counts as extrapolated."""

from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from servesim.check import problems
from servesim.cost.auto import Auto
from servesim.cost.gpu import Gpu
from servesim.cost.kernel_set import KernelSet
from servesim.cost.profile import Profile
from tests.cost.fitted import H100, SAID, profile
from tests.cost.shipped import CONF, gpu, model

SHIPPED = sorted((CONF / "calibration").glob("*-*.yaml"))
OVERHEADS = sorted((CONF / "engine_overhead").glob("*.yaml"))


def kernels(
    a_gpu: Gpu = H100, weights: str = "bf16", gpus: int = 1, kv: Any = "auto", **changes: Any
) -> KernelSet:
    return profile(**changes).kernels(model("llama3.1-8b", weights_dtype=weights), a_gpu, gpus, kv)


def said(*path: str, **changes: Any) -> dict[str, Any]:
    """Return what the profile says, with the mapping at ``path`` changed; None takes a key away."""
    all_of_it = deepcopy(SAID)
    place = all_of_it
    for key in path:
        place = place[key]
    place.update(changes)
    for key in [key for key, value in changes.items() if value is None]:
        del place[key]
    return all_of_it


def found(values: dict[str, Any]) -> list[str]:
    return [str(problem) for problem in problems(Profile(**values))]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_shipped_profile_is_free_of_problems(path: Path) -> None:
    values = yaml.safe_load(path.read_text())
    assert values.pop("kind") == "profile"
    one = Profile(**values)
    assert not list(problems(one))
    assert one.name == path.stem == f"{one.gpu}-{one.engine}"
    a_gpu = gpu(one.gpu)
    assert one.distance(a_gpu) == 0
    step = one.step_time(
        model("llama3.1-8b"), a_gpu, 1, "auto", max_num_seqs=8, max_num_batched_tokens=64
    ).mixed(8, 8000, [(50, 0)])
    assert 1e-3 < step < 0.1


def test_the_made_profile_is_free_of_problems() -> None:
    assert found(SAID) == []


@pytest.mark.parametrize(
    ("values", "line"),
    [
        (said("gemm", "bf16", tile_rate=-1.0), "gemm.bf16.tile_rate = -1.0: must be at least 1e-09"),
        (said("gemm", "bf16", tile_rat=1.0), "gemm.bf16.tile_rat = 1.0: unknown coefficient"),
        (said("gemm", "bf16", launch_s=None), "gemm.bf16.launch_s: is missing"),
        (said("gemm", bf16=None), "gemm.bf16: is missing"),
        (said("all_reduce", "gpus_2", gpus=1), "all_reduce.gpus_2.gpus = 1: must be at least 2"),
        (said("datasheet", hbm_bytes_per_s=None), "datasheet.hbm_bytes_per_s: is missing"),
    ],
)
def test_wrong_coefficients_are_listed_with_their_place(values: dict[str, Any], line: str) -> None:
    (problem,) = found(values)
    assert problem.startswith(line)


@pytest.mark.parametrize("shape", [None, 3, "x", [1], {"bf16": [1]}, {"bf16": None}, {"bf16": 3}])
@pytest.mark.parametrize("operation", ["gemm", "decode_attention", "prefill_attention", "quantise"])
def test_coefficients_of_another_shape_are_refused(operation: str, shape: Any) -> None:
    assert all(line.startswith(operation) for line in found(SAID | {operation: shape}))
    assert found(SAID | {operation: shape})


@pytest.mark.parametrize(
    ("ranges", "line"),
    [
        ("x", "ranges = 'x': must be keys with values"),
        (None, "ranges: must be keys with values"),
        ({"gemm": 3}, "ranges.gemm = 3: must be ranges"),
        ({"gemm": {"fp8": "x"}}, "ranges.gemm.fp8 = 'x': must be ranges"),
        ({"gemm": {"fp8": ["a", "b"]}}, "ranges.gemm.fp8 = ['a', 'b']: must be ranges"),
        ({"gemm": {"fp8": {"m": 5}}}, "ranges.gemm.fp8.m = 5: must be [least, largest]"),
        ({"gemm": {"fp8": {"m": ["a", "b"]}}}, "ranges.gemm.fp8.m = ['a', 'b']: must be [least"),
        ({"gemm": {"fp8": {"m": [2, 1]}}}, "ranges.gemm.fp8.m = [2, 1]: must be [least, largest]"),
        ({"gemm": {"fp8": {"m": [1, float("nan")]}}}, "ranges.gemm.fp8.m = [1, nan]: must be [least"),
        ({"gemm": {"fp8": {"m": "ab"}}}, "ranges.gemm.fp8.m = 'ab': must be [least, largest]"),
    ],
)
def test_ranges_of_another_shape_are_refused(ranges: Any, line: str) -> None:
    (problem,) = found(SAID | {"ranges": ranges})
    assert problem.startswith(line)


@pytest.mark.parametrize("figure", [0, -1.0, "fast", None, True, float("inf")])
def test_a_datasheet_has_figures(figure: Any) -> None:
    (problem,) = found(SAID | {"datasheet": SAID["datasheet"] | {"hbm_bytes_per_s": figure}})
    assert problem.startswith("datasheet.hbm_bytes_per_s")


def test_a_gpu_without_fp8_has_none_in_its_datasheet() -> None:
    assert not found(SAID | {"datasheet": SAID["datasheet"] | {"fp8_flops_per_s": None}})


@pytest.mark.parametrize("shape", [None, [1], 3, "x"])
def test_what_is_no_mapping_is_no_profile(shape: Any) -> None:
    (problem,) = problems(Auto({"a": shape}))
    assert problem.path == "profiles.a"
    assert "must be a profile" in problem.message
    (problem,) = problems(Auto(shape))
    assert problem.path == "profiles"


def test_all_that_is_wrong_with_a_profile_is_told_at_once() -> None:
    said = {key: value for key, value in SAID.items() if key != "gemm"}
    wrong = said | {"ranges": "x", "gemms": {}, "decode_attention": {"bf16": None}, "name": 3}
    assert [problem.path for problem in problems(Auto({"a": wrong}))] == [
        "profiles.a.gemms",
        "profiles.a.gemm",
        "profiles.a.name",
        "profiles.a.ranges",
        "profiles.a.decode_attention.bf16",
    ]


def test_the_hash_follows_what_decides_times_and_nothing_else() -> None:
    assert profile().hash == profile(provenance={"package": "other"}, name="other").hash
    assert profile().hash != Profile(**said("gemm", "bf16", tile_rate=0.86)).hash
    assert profile().hash != Profile(**said("ranges", "gemm", "bf16", m=[1, 2])).hash


def test_a_format_without_a_table_is_scaled_from_bf16() -> None:
    """Where weights bound the time, four bits take a bit more than a quarter of it."""
    int4, bf16 = kernels(weights="int4").gemm, kernels().gemm
    seconds = [float(form.seconds(H100, 1, 57344, 8192)) for form in (int4, bf16)]
    assert 0.25 < seconds[0] / seconds[1] < 0.3
    assert "gemm" not in kernels(weights="int4").ranges
    assert "lm_head" in kernels(weights="int4").ranges
    assert "gemm" in kernels(weights="fp8").ranges


def test_fp8_kv_without_a_table_reads_half_the_bytes() -> None:
    without = kernels(kv="fp8", decode_attention={"bf16": SAID["decode_attention"]["bf16"]})
    halves = [form.seconds(H100, 64, 32, 8, 128, 1e6) for form in (without.decode, kernels().decode)]
    assert halves[0] == pytest.approx(halves[1] / 2, rel=0.01)
    assert "decode_attention" not in without.ranges


def test_activations_are_quantised_where_the_gpu_multiplies_in_fp8() -> None:
    assert kernels(weights="fp8").quantised
    assert not kernels(weights="fp8", a_gpu=gpu("a100-sxm-80gb")).quantised
    assert not kernels(weights="bf16").quantised


def test_an_all_reduce_of_other_gpus_moves_what_they_need() -> None:
    """Two shots at TP 16 move 2 x 15/16 of the message where TP 8 moves 2 x 7/8: 7% more for large ones."""
    sixteen, eight = kernels(gpus=16), kernels(gpus=8)
    large = [float(one.all_reduce.seconds(H100, 1e9)) for one in (sixteen, eight)]
    assert large[0] / large[1] == pytest.approx((15 / 16) / (7 / 8), rel=0.01)
    assert "all_reduce" not in sixteen.ranges
    assert "all_reduce" in eight.ranges
    ring = kernels(gpus=8, all_reduce={})
    assert float(ring.all_reduce.seconds(H100, 450e9)) == pytest.approx(1.75, rel=1e-4)
    assert "all_reduce" not in ring.ranges


def test_another_datasheet_is_extrapolated() -> None:
    assert set(kernels(gpus=8).ranges) == {
        "gemm",
        "lm_head",
        "decode_attention",
        "prefill_attention",
        "all_reduce",
        "quantise",
    }
    assert set(kernels(gpus=8, a_gpu=gpu("h100-sxm", hbm_bytes_per_s=4e12)).ranges) == {"all_reduce"}
    links = kernels(gpus=8, a_gpu=gpu("h100-sxm", nvlink_bytes_per_s=200e9))
    assert "all_reduce" not in links.ranges
    assert "gemm" in links.ranges
    assert "gemm" in kernels(a_gpu=gpu("h100-sxm", usd_per_hour=1.0)).ranges


def test_rates_scale_with_the_datasheet() -> None:
    """Twice the bandwidth: a product that streams its weights takes half the time, but for the launch."""
    fast = gpu("h100-sxm", hbm_bytes_per_s=2 * H100.hbm_bytes_per_s)
    form = kernels().gemm
    launch = form.launch_s
    slow_s, fast_s = (float(form.seconds(one, 1, 57344, 8192)) - launch for one in (H100, fast))
    assert fast_s == pytest.approx(slow_s / 2, rel=0.02)


def test_auto_takes_the_profile_of_the_gpu_or_else_of_the_nearest() -> None:
    other = said("datasheet", hbm_bytes_per_s=4.8e12) | {"name": "h200-sxm-made", "gpu": "h200-sxm"}
    auto = Auto({"h100-sxm-made": SAID, "h200-sxm-made": other})
    assert auto.profile(H100).gpu == "h100-sxm"
    assert auto.profile(gpu("h200-sxm")).gpu == "h200-sxm"
    assert auto.profile(replace(gpu("h200-sxm"), name="mine")).gpu == "h200-sxm"
    assert auto.profile(gpu("a100-sxm-80gb")).gpu == "h100-sxm"
    assert not list(problems(auto))
    assert list(problems(Auto({"wrong": said("gemm", bf16=None)})))


@pytest.mark.parametrize("path", OVERHEADS, ids=lambda path: path.stem)
def test_every_shipped_overhead_names_an_engine_with_profiles(path: Path) -> None:
    values = yaml.safe_load(path.read_text())
    assert values["name"] == path.stem
    assert any(one.stem.endswith(f"-{values['engine']}") for one in SHIPPED)


def test_an_operation_that_the_ranges_leave_out_is_extrapolated() -> None:
    others = {operation: ranges for operation, ranges in SAID["ranges"].items() if operation != "quantise"}
    assert "quantise" not in kernels(ranges=others).ranges
    assert "gemm" in kernels(ranges=others).ranges


@pytest.mark.parametrize("gpu_name", ["h100-sxm", "h200-sxm", "b200-sxm", "l40s", "rtx-pro-6000"])
def test_small_kernels_are_as_fast_under_sglang_as_under_vllm(gpu_name: str) -> None:
    """Both serve with fused kernels that go once through the activations, replayed in a CUDA graph."""
    said_by = {
        engine: yaml.safe_load((CONF / "calibration" / f"{gpu_name}-{engine}.yaml").read_text())
        for engine in ("sglang", "vllm")
    }
    assert said_by["sglang"]["quantise"]["static"] == said_by["vllm"]["quantise"]["static"]
    assert "quantise" not in said_by["sglang"]["ranges"]


def test_ranges_are_those_of_the_format() -> None:
    assert kernels().ranges["gemm"]["m"] == (1.0, 32768.0)
    assert np.isinf(kernels(ranges={}).ranges["gemm"].get("m", (np.inf, np.inf))[0])
