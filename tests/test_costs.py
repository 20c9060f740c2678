"""The step times of the tests keep the promises of the interface that they stand in for."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim.cost.step_time import StepTime
from tests.costs import AffineStepTime, constant_step

BROKEN: StepTime = AffineStepTime(
    step_s=1.0, sequence_s=0.5, context_s=0.01, prefill_token_s=0.1, breaks=((10, 0.02), (30, 0.0))
)


@given(st.integers(1, 8), st.integers(0, 60))
def test_a_segment_holds_from_its_context_to_its_limit(sequences: int, context: int) -> None:
    base_s, slope_s, limit = BROKEN.decode(sequences, context)
    assert limit >= context
    for further in range(context, int(min(limit, 60)) + 1):
        assert BROKEN.mixed(sequences, further, ()) == pytest.approx(base_s + slope_s * further)


def test_the_slope_breaks_and_the_time_does_not_jump() -> None:
    assert BROKEN.decode(2, 10) == (2.0, 0.01, 10)
    assert BROKEN.decode(2, 11) == pytest.approx((1.9, 0.02, 30))
    assert BROKEN.decode(2, 31) == pytest.approx((2.5, 0.0, inf))
    assert [BROKEN.mixed(2, context, ()) for context in (9, 10, 11, 30, 31)] == pytest.approx(
        [2.09, 2.10, 2.12, 2.50, 2.50]
    )


def test_chunks_cost_their_new_and_their_cached_tokens() -> None:
    step_time = AffineStepTime(step_s=1.0, prefill_token_s=0.1, cached_token_s=0.02)
    assert step_time.mixed(0, 0, [(3, 0), (2, 5)]) == pytest.approx(1.0 + 0.5 + 0.1)
    assert sum(part.seconds for part in step_time.breakdown(0, 0, [(3, 0), (2, 5)])) == pytest.approx(1.6)


def test_a_constant_step_costs_the_same_whatever_it_holds() -> None:
    assert constant_step(2.0).mixed(7, 900, [(30, 4)]) == constant_step(2.0).mixed(1, 1, ()) == 2.0
