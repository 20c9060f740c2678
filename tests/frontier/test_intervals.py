"""Intervals over replications."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from servesim.config.expansion import Expansion
from servesim.config.groups import Groups
from servesim.frontier.intervals import paired_difference, replicate_interval
from servesim.simulation import run

VALUES = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=12)


@given(VALUES, st.floats(0.5, 0.999))
def test_the_interval_is_students(values: list[float], confidence: float) -> None:
    found = replicate_interval(values, confidence)
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    half = stats.t.ppf((1 + confidence) / 2, len(values) - 1) * error
    assert found.mean == pytest.approx(np.mean(values))
    assert (found.low, found.high) == pytest.approx((found.mean - half, found.mean + half), abs=1e-9)
    assert found.n == len(values)


@given(VALUES)
def test_more_confidence_is_a_wider_interval_around_the_same_mean(values: list[float]) -> None:
    narrow, wide = (replicate_interval(values, confidence) for confidence in (0.8, 0.99))
    assert wide.low <= narrow.low <= narrow.mean == wide.mean <= narrow.high <= wide.high


@given(st.floats(-1e3, 1e3), st.integers(2, 9))
def test_equal_replications_have_an_interval_without_a_width(value: float, count: int) -> None:
    assert replicate_interval([value] * count) == (value, value, value, count)


def test_one_replication_has_no_interval_and_none_has_nothing() -> None:
    one = replicate_interval([3.0, math.nan])
    assert (one.mean, one.n) == (3.0, 1)
    assert math.isnan(one.low)
    assert math.isnan(one.high)
    none = replicate_interval([math.nan])
    assert none.n == 0
    assert math.isnan(none.mean)


@given(VALUES, st.floats(-1e3, 1e3))
def test_what_both_have_in_common_cancels_out_of_a_difference(values: list[float], shift: float) -> None:
    found = paired_difference(np.array(values) + shift, values)
    assert (found.mean, found.low, found.high) == pytest.approx((shift,) * 3, abs=1e-6)


def test_pairs_without_a_figure_are_left_out() -> None:
    assert paired_difference([1, math.nan, 3, 4], [0, 1, math.nan, 1]).n == 2
    with pytest.raises(ValueError, match="as many"):
        paired_difference([1, 2], [1])


def test_common_random_numbers_make_a_difference_clear() -> None:
    gaps, first, second = np.random.default_rng(5).normal(size=(3, 20))
    paired = paired_difference(10 * gaps + first + 2, 10 * gaps + second)
    assert 0 < paired.low < 2 < paired.high
    apart = replicate_interval(10 * gaps + first + 2)
    assert apart.high - apart.low > 2 * (paired.high - paired.low)


SMALL_STUDY = [
    *("steady=true", "model=llama3.1-8b", "cluster.replicas=1", "cluster.tensor_parallel_size=1"),
    *("calibration=roofline", "workload.arrivals.rate_rps=10"),
]
STUDIES, SEEDS, REQUESTS, LONG = 200, 5, 400, 400_000


@pytest.mark.slow
def test_intervals_hold_the_long_run_value_as_often_as_they_say() -> None:
    """Of 200 studies of 5 seeds, 95% +- 4% hold the mean TTFT of a run a thousand times as long."""
    scenarios = Expansion(Groups.of(None))

    def mean_ttft_s(requests: int, seed: int) -> float:
        typed = [*SMALL_STUDY, f"workload.requests={requests}", f"seed={seed}"]
        scenario = scenarios.scenario(typed).scenario
        assert scenario is not None
        return float(run(scenario).summary["latency"]["ttft_s"]["mean"])

    truth = mean_ttft_s(LONG, 10**6)
    held = 0
    for study in range(STUDIES):
        interval = replicate_interval([mean_ttft_s(REQUESTS, study * SEEDS + seed) for seed in range(SEEDS)])
        held += interval.low <= truth <= interval.high
    assert 0.90 <= held / STUDIES <= 0.99
