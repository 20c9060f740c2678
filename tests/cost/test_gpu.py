"""The shipped GPUs, and what is refused."""

import pytest

from servesim.check import ConfigError, check
from tests.cost.shipped import GPUS, gpu


@pytest.mark.parametrize("name", GPUS)
def test_shipped_gpus_are_sound(name: str) -> None:
    check(gpu(name))
    assert gpu(name).name == name


@pytest.mark.parametrize(
    ("name", "gib"), [("h100-sxm", 79.19), ("h200-sxm", 139.80), ("a100-sxm-80gb", 79.25)]
)
def test_memory_is_what_the_driver_reports(name: str, gib: float) -> None:
    assert gpu(name).memory_bytes / 2**30 == pytest.approx(gib, abs=0.005)


def test_weights_are_multiplied_in_their_dtype_where_the_gpu_can() -> None:
    h100, a100 = gpu("h100-sxm"), gpu("a100-sxm-80gb")
    assert h100.peak_flops("fp8") == pytest.approx(2 * h100.peak_flops("bf16"), rel=1e-3)
    assert h100.peak_flops("int4") == h100.peak_flops("bf16")
    assert a100.peak_flops("fp8") == a100.peak_flops("int4") == a100.peak_flops("bf16") == 312e12


def test_every_wrong_figure_is_listed() -> None:
    wrong = gpu("h100-sxm", nvlink_bytes_per_s=0.0, hbm_bytes_per_s=float("nan"), nic_latency_s=-1e-6)
    with pytest.raises(ConfigError) as error:
        check(wrong, "gpu")
    assert [problem.path for problem in error.value.problems] == [
        "gpu.hbm_bytes_per_s",
        "gpu.nvlink_bytes_per_s",
        "gpu.nic_latency_s",
    ]


def test_idle_power_may_not_exceed_the_maximum() -> None:
    with pytest.raises(ConfigError, match="idle_w = 800"):
        check(gpu("h100-sxm", idle_w=800.0))
