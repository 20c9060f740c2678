"""Runs of equal-batch steps in closed form."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim.engine.leap import Leap


@pytest.fixture
def leap() -> Leap:
    """Four steps of 1, 1.5, 2 and 2.5 s from 10 s on; they end at 11, 12.5, 14.5 and 17 s."""
    leap = Leap()
    assert leap.begin(10.0, 4, 1.0, 0.5) == 17.0
    return leap


@pytest.mark.parametrize(
    ("arrival_s", "end_s", "steps"),
    [(9.0, 11.0, 1), (10.0, 11.0, 1), (10.7, 11.0, 1), (11.0, 11.0, 1), (12.0, 12.5, 2), (12.5, 12.5, 2)],
)
def test_a_cut_ends_at_the_first_boundary_at_or_after_it(
    leap: Leap, arrival_s: float, end_s: float, steps: int
) -> None:
    assert leap.cut(arrival_s) == leap.end_s == end_s
    assert leap.steps == steps


def test_a_cut_in_the_last_step_changes_nothing(leap: Leap) -> None:
    assert leap.cut(14.6) is None
    assert (leap.steps, leap.end_s) == (4, 17.0)


def test_a_single_step_is_never_cut() -> None:
    leap = Leap()
    assert leap.begin_one(2.0, 0.5) == 2.5
    assert leap.cut(2.1) is None
    assert (leap.steps, leap.end_s) == (1, 2.5)


def test_equal_steps_are_cut_by_division() -> None:
    leap = Leap()
    leap.begin(0.0, 1000, 0.1, 0.0)
    assert leap.cut(12.345) == pytest.approx(12.4)
    assert leap.steps == 124


@pytest.mark.parametrize(
    ("horizon_s", "steps"), [(10.5, 0), (11.0, 1), (12.4, 1), (12.5, 2), (16.9, 3), (17.0, 4)]
)
def test_a_halt_keeps_the_steps_that_have_ended(leap: Leap, horizon_s: float, steps: int) -> None:
    assert leap.halt(horizon_s) == (steps > 0)
    assert leap.steps == steps


def test_nothing_under_way_stays_nothing() -> None:
    assert not Leap().halt(5.0)


@given(
    steps=st.integers(2, 400),
    first_s=st.floats(1e-4, 1.0),
    increment_s=st.one_of(st.just(0.0), st.floats(1e-9, 0.1)),
    start_s=st.floats(0.0, 1e5),
    share=st.floats(-0.1, 1.1),
)
def test_the_quadratic_is_a_search(
    steps: int, first_s: float, increment_s: float, start_s: float, share: float
) -> None:
    """Whatever the steps, a cut finds the boundary that looking at each in turn finds."""
    leap = Leap()
    end_s = leap.begin(start_s, steps, first_s, increment_s)
    durations = (first_s + step * increment_s for step in range(steps))
    ends = list(accumulate(durations, initial=start_s))[1:]
    assert end_s == pytest.approx(ends[-1])
    arrival_s = start_s + share * (end_s - start_s)
    leap.cut(arrival_s)
    tolerance_s = 1e-12 * end_s
    assert leap.end_s == pytest.approx(ends[leap.steps - 1])
    assert leap.end_s >= arrival_s - tolerance_s or leap.steps == steps
    assert leap.steps == 1 or ends[leap.steps - 2] <= arrival_s + 1e-9 * end_s
