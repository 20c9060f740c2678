"""Board power and energy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim.cost.power import energy_joules, power_w
from tests.cost.shipped import gpu

SHARES = st.floats(0, 1)


def test_an_h100_by_hand() -> None:
    """Idle 100 W, at most 700 W: 30% of FLOP/s and 40% of bandwidth draw 100 + 600 x 0.7 = 520 W."""
    h100 = gpu("h100-sxm", idle_w=100.0, max_w=700.0)
    assert power_w(0.3, 0.4, h100) == pytest.approx(520)
    joules = energy_joules([0, 0.3, 0.9], [0, 0.4, 0.9], [10.0, 10.0, 0.5], h100)
    assert joules == pytest.approx([1000, 5200, 350])


@given(compute=SHARES, bandwidth=SHARES, more=SHARES, seconds=st.floats(0, 1e6))
def test_power_lies_between_idle_and_maximum_and_grows_with_work(
    compute: float, bandwidth: float, more: float, seconds: float
) -> None:
    a100 = gpu("a100-sxm-80gb")
    power = power_w(compute, bandwidth, a100)
    assert a100.idle_w <= power <= a100.max_w
    assert power_w(compute + more, bandwidth, a100) >= power
    assert power_w(compute, bandwidth + more, a100) >= power
    assert energy_joules(compute, bandwidth, seconds, a100) == power * seconds


def test_a_gpu_at_rest_draws_idle_power() -> None:
    h200 = gpu("h200-sxm")
    assert energy_joules(np.zeros(3), np.zeros(3), np.ones(3), h200).tolist() == [h200.idle_w] * 3
