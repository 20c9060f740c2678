"""An axis shows all its values, and has ticks where they can be read."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim.report.scale import Scale

positive = st.lists(st.floats(1e-6, 1e9), min_size=1, max_size=20).map(np.array)


@pytest.mark.parametrize("logarithmic", [True, False])
@given(values=positive)
def test_all_values_are_within_the_ends(logarithmic, values):
    scale = Scale.around(values, logarithmic)
    assert scale.low <= values.min()
    assert values.max() < scale.high
    assert (scale.low == 0) == (not logarithmic)


@given(values=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20).map(np.array))
def test_a_linear_axis_shows_0_and_what_is_negative(values):
    scale = Scale.around(values, False)
    assert scale.low <= min(values.min(), 0)
    assert scale.high >= max(values.max(), 0)
    assert scale.low < scale.high


@given(values=positive)
def test_a_logarithmic_axis_has_ticks_within_its_ends(values):
    scale = Scale.around(values, True)
    axis = scale.axis()
    ticks = axis.get("tickvals", [scale.low, scale.high])
    assert all(scale.low <= tick <= scale.high for tick in ticks)
    assert 2 <= len(ticks) <= 18
    assert ("nticks" in axis) != ("tickvals" in axis)
    assert axis["range"] == pytest.approx(np.log10([scale.low, scale.high]))


@given(values=positive)
def test_what_is_placed_comes_back(values):
    scale = Scale.around(values, True)
    np.testing.assert_allclose(scale.value(scale.place(values)), values, rtol=1e-9)


def test_an_axis_without_values_has_ends():
    for logarithmic in (True, False):
        scale = Scale.around(np.array([]), logarithmic)
        assert scale.low < scale.high


def test_the_good_side_of_a_bound():
    scale = Scale(0.0, 10.0)
    assert scale.within(4.0, 1) == (4.0, 10.0)
    assert scale.within(4.0, -1) == (0.0, 4.0)
    low, high = scale.within(12.0, 1)
    assert low > high
