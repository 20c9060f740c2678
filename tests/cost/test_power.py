"""Board power and energy."""

from dataclasses import replace

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from servesim.check import problems
from servesim.config.loading import load
from servesim.cost.power import BoardPower
from tests.cost.shipped import CONF, GPUS, gpu, values

SHARES = st.floats(0, 1)
WEIGHTS = st.builds(BoardPower, compute_weight=st.floats(0, 10), bandwidth_weight=st.floats(0, 10))


def test_an_h100_by_hand() -> None:
    """Idle 100 W, at most 700 W: 30% of FLOP/s and 40% of bandwidth draw 100 + 600 x 0.7 = 520 W."""
    h100 = gpu("h100-sxm", idle_w=100.0, max_w=700.0)
    power = BoardPower()
    assert power.power_w(0.3, 0.4, h100) == pytest.approx(520)
    joules = power.energy_joules([0, 0.3, 0.9], [0, 0.4, 0.9], [10.0, 10.0, 0.5], h100)
    assert joules == pytest.approx([1000, 5200, 350])


def test_weights_by_hand() -> None:
    """Weights of 2 and 0.5: 30% of FLOP/s and 40% of bandwidth weigh 0.6 and 0.2."""
    h100 = gpu("h100-sxm", idle_w=100.0, max_w=700.0)
    assert BoardPower("", 2.0, 0.5).power_w(0.3, 0.4, h100) == pytest.approx(580)


@given(
    weights=WEIGHTS,
    name=st.sampled_from(GPUS),
    compute=SHARES,
    bandwidth=SHARES,
    more=SHARES,
    seconds=st.floats(0, 1e6),
)
def test_power_lies_between_idle_and_maximum_and_grows_with_work(
    weights: BoardPower, name: str, compute: float, bandwidth: float, more: float, seconds: float
) -> None:
    a_gpu = gpu(name)
    power = weights.power_w(compute, bandwidth, a_gpu)
    assert a_gpu.idle_w <= power <= a_gpu.max_w
    assert weights.power_w(compute + more, bandwidth, a_gpu) >= power
    assert weights.power_w(compute, bandwidth + more, a_gpu) >= power
    assert weights.energy_joules(compute, bandwidth, seconds, a_gpu) == power * seconds


@given(weights=WEIGHTS, compute=SHARES, bandwidth=SHARES, factor=st.floats(1, 3))
def test_power_grows_with_the_weights(
    weights: BoardPower, compute: float, bandwidth: float, factor: float
) -> None:
    a100 = gpu("a100-sxm-80gb")
    power = weights.power_w(compute, bandwidth, a100)
    for name in ("compute_weight", "bandwidth_weight"):
        heavier = replace(weights, **{name: factor * getattr(weights, name)})
        assert heavier.power_w(compute, bandwidth, a100) >= power


@given(weights=WEIGHTS)
def test_a_gpu_at_rest_draws_idle_power(weights: BoardPower) -> None:
    h200 = gpu("h200-sxm")
    assert weights.energy_joules(np.zeros(3), np.zeros(3), np.ones(3), h200).tolist() == [h200.idle_w] * 3


@pytest.mark.parametrize("path", sorted((CONF / "board_power").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_shipped_file_is_free_of_problems(path: object) -> None:
    said = yaml.safe_load(path.read_text())  # type: ignore[attr-defined]
    assert not list(problems(BoardPower(**said)))
    assert said["name"] == path.stem  # type: ignore[attr-defined]


def test_the_fitted_weights_are_the_default_and_can_be_set() -> None:
    assert load().board_power == BoardPower(**values("board_power", "a100"))
    assert load("board_power=assumed").board_power == BoardPower()
    assert load("board_power.compute_weight=1.5").board_power.compute_weight == 1.5
