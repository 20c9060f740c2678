"""Better hardware never makes one request slower."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import servesim
from servesim.scenario import Scenario
from servesim.workload.arrivals import Constant
from servesim.workload.lengths import Fixed
from servesim.workload.synthetic import Synthetic
from tests.laws.cases import KINDS

RATES = ("hbm_bytes_per_s", "bf16_flops_per_s", "fp8_flops_per_s", "nvlink_bytes_per_s", "nic_bytes_per_s")
FASTER = st.floats(1.01, 100.0)


#: Step times of the datasheet, and of the fitted profile.
CALIBRATIONS = pytest.mark.parametrize("calibration", ["roofline", "auto"])


@cache
def scenario(kind: str, calibration: str = "roofline") -> Scenario:
    """Return the default scenario of a kind, with room for any request whatever the GPU."""
    room = "scheduler.num_gpu_blocks_override=20000"
    return servesim.load(f"scheduler={kind}", f"calibration={calibration}", room)


def alone(base: Scenario, input_tokens: int, output_tokens: int) -> tuple[float, float, float]:
    """Return E2E, TTFT and transfer time of a single request."""
    workload = Synthetic(Constant(1.0), Fixed(input_tokens, output_tokens), requests=1)
    row = servesim.run(replace(base, workload=workload)).requests.iloc[0]
    return row.e2e_s, row.ttft_s, row.transfer_s


@CALIBRATIONS
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=5)
@given(
    rate=st.sampled_from(RATES),
    factor=FASTER,
    input_tokens=st.integers(1, 9000),
    output_tokens=st.integers(1, 300),
)
def test_no_time_grows_with_a_rate(
    kind: str, calibration: str, rate: str, factor: float, input_tokens: int, output_tokens: int
) -> None:
    base = scenario(kind, calibration)
    better = replace(base, gpu=replace(base.gpu, **{rate: getattr(base.gpu, rate) * factor}))
    before, after = (alone(it, input_tokens, output_tokens) for it in (base, better))
    assert all(late <= soon * (1 + 1e-12) for soon, late in zip(before, after, strict=True))


@CALIBRATIONS
@pytest.mark.parametrize("kind", KINDS)
def test_each_bound_resource_counts(kind: str, calibration: str) -> None:
    """Of a prompt of 9,000 tokens and 100 decodes: compute bounds some, bandwidth some, NVLink the rest."""
    base = scenario(kind, calibration)
    e2e_s, ttft_s, _ = alone(base, 9000, 100)
    for rate in ("hbm_bytes_per_s", "nvlink_bytes_per_s"):
        better = replace(base, gpu=replace(base.gpu, **{rate: 2 * getattr(base.gpu, rate)}))
        assert alone(better, 9000, 100)[0] < e2e_s
    better = replace(base, gpu=replace(base.gpu, fp8_flops_per_s=2 * base.gpu.fp8_flops_per_s))
    assert alone(better, 9000, 100)[1] < ttft_s


def test_a_faster_link_moves_kv_faster() -> None:
    """A link of twice the bandwidth halves what a transfer takes beyond its latency."""
    base = scenario("disaggregated")
    transfers = [replace(base.cluster.transfer, bandwidth_bytes_per_s=b, latency_s=1e-3) for b in (1e9, 2e9)]
    slow, fast = (alone(replace(base, cluster=replace(base.cluster, transfer=t)), 5000, 2) for t in transfers)
    assert fast[2] - 1e-3 == pytest.approx((slow[2] - 1e-3) / 2, rel=1e-9)
    assert slow[0] - fast[0] == pytest.approx(slow[2] - fast[2], rel=1e-6)
