"""Laws that every form obeys, at calibrated sizes and far beyond."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servesim.check import check
from tests.cost.kernels.forms import CASES, H100, Case

cases = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


@cases
@settings(max_examples=25)
@given(data=st.data())
def test_no_size_makes_it_faster(case: Case, data: st.DataObject) -> None:
    sizes = data.draw(case.any_sizes())
    name = data.draw(st.sampled_from(sorted(case.sizes)))
    step = case.steps.get(name, 1) * data.draw(st.integers(1, 200))
    larger = sizes | {name: sizes[name] + step}
    assert case.seconds(**larger) >= case.seconds(**sizes) * (1 - 1e-12)


@cases
@settings(max_examples=25)
@given(data=st.data())
def test_it_never_beats_the_datasheet(case: Case, data: st.DataObject) -> None:
    """Up to 100 times the calibrated sizes, together or one of them."""
    sizes = data.draw(case.any_sizes(100))
    seconds, floor = case.seconds(**sizes), case.floor(H100, sizes)
    assert math.isfinite(seconds)
    assert seconds > 0
    assert seconds >= floor * (1 - 1e-12)


@cases
def test_far_beyond_the_range_it_is_a_fraction_of_the_roofline(case: Case) -> None:
    """All sizes at 100 times the calibrated ones at once: the datasheet's time within a factor of 10."""
    sizes = {name: 100 * largest for name, largest in case.sizes.items()}
    if floor := case.floor(H100, sizes):
        assert 1 <= case.seconds(**sizes) / floor < 10


@cases
@settings(max_examples=25)
@given(data=st.data(), factor=st.floats(1, 20))
def test_a_better_gpu_is_no_slower(case: Case, data: st.DataObject, factor: float) -> None:
    sizes = data.draw(case.any_sizes())
    for figure in ("hbm_bytes_per_s", "bf16_flops_per_s", "fp8_flops_per_s", "nvlink_bytes_per_s"):
        better = dataclasses.replace(H100, **{figure: getattr(H100, figure) * factor})
        assert case.seconds(better, **sizes) <= case.seconds(**sizes) * (1 + 1e-12)


@cases
def test_on_a_gpu_twice_as_good_in_all_rates_only_latencies_stay(case: Case) -> None:
    rates = ("hbm_bytes_per_s", "bf16_flops_per_s", "fp8_flops_per_s", "nvlink_bytes_per_s")
    twice = dataclasses.replace(H100, **{name: 2 * getattr(H100, name) for name in rates})
    sizes = {name: 20 * largest for name, largest in case.sizes.items()}
    assert 0.5 * (1 - 1e-12) <= case.seconds(twice, **sizes) / case.seconds(**sizes) < 1


@cases
@settings(max_examples=25)
@given(data=st.data())
def test_arrays_and_numbers_agree(case: Case, data: st.DataObject) -> None:
    several = data.draw(st.lists(case.any_sizes(), min_size=1, max_size=5))
    columns = {name: np.array([sizes[name] for sizes in several]) for name in case.sizes}
    numbers = [case.seconds(**sizes) for sizes in several]
    assert case.seconds(**columns) == pytest.approx(numbers, rel=1e-13)


@cases
def test_its_coefficients_are_checked(case: Case) -> None:
    check(case.form)
    fields = {field.name for field in dataclasses.fields(case.form)}
    for name in fields & {"launch_s", "quick_s"}:
        with pytest.raises(ValueError, match=name):
            check(dataclasses.replace(case.form, **{name: -1e-6}))
