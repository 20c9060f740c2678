"""Arrival processes against the theory of their gaps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim.check import ConfigError, check
from servesim.streams import Streams
from servesim.workload.arrivals import Burst, ClosedLoop, Constant, Gamma, OpenLoop, Poisson
from servesim.workload.batch import FloatArray
from servesim.workload.schedule import Schedule
from tests.workload.theory import SAMPLES, SIGMAS, assert_mean, assert_variance

RATES = st.floats(1e-3, 1e4)
PROCESSES: list[OpenLoop] = [Poisson(3.0), Gamma(3.0, 0.2), Constant(3.0), Schedule([[0, 1], [5, 9]], 8.0)]


def moments(process: OpenLoop, count: int, seed: int = 0) -> FloatArray:
    return process.times(np.cumsum(process.unit_gaps(Streams(seed).stream("arrivals"), count)))


@pytest.mark.parametrize(
    "process",
    [Poisson(0.5), Poisson(40.0), *(Gamma(4.0, shape) for shape in (0.05, 0.25, 0.5, 1.0, 4.0, 100.0))],
    ids=str,
)
def test_mean_and_scatter_of_1e5_gaps_are_those_of_theory(process: Poisson | Gamma) -> None:
    """Mean 1/rate; c = squared coefficient of variation 1/burstiness, each with confidence 1 - 7e-6.

    The standard error of c for gamma gaps is sqrt((2 c^2 + 2 c^3)/n): the delta method on
    s^2/mean^2 with central moments c, 2 c^2 and 3 c^2 + 6 c^3 of a gap of mean 1.
    """
    gaps = np.diff(moments(process, SAMPLES), prepend=0.0)
    c = process.gap_scv
    assert_mean(gaps, 1 / process.rate_rps, c / process.rate_rps**2)
    error = np.sqrt((2 * c**2 + 2 * c**3) / SAMPLES)
    assert abs(gaps.var() / gaps.mean() ** 2 - c) <= SIGMAS * error


def test_burstiness_is_the_shape_of_the_gaps() -> None:
    assert (Gamma(4.0, 0.25).gap_scv, Gamma(4.0, 2.0).gap_scv, Poisson(4.0).gap_scv) == (4.0, 0.5, 1.0)
    assert Gamma(4.0, 0.25).gap_mean_s == 0.25


def test_short_gaps_are_as_frequent_as_they_should_be() -> None:
    """P(gap < g) = 1 - exp(-rate g): nothing is clipped from below."""
    gaps = np.diff(moments(Poisson(2.0), SAMPLES), prepend=0.0)
    for limit in (5e-4, 5e-3, 5e-2):
        share = 1 - np.exp(-2.0 * limit)
        assert_mean((gaps < limit).astype(float), share, share * (1 - share))


def test_a_constant_rate_ticks() -> None:
    assert moments(Constant(4.0), 3).tolist() == [0.25, 0.5, 0.75]
    assert Constant(4.0).gap_scv == 0


def test_gamma_with_shape_1_is_poisson_request_by_request() -> None:
    assert np.array_equal(moments(Gamma(7.0, 1.0), 100), moments(Poisson(7.0), 100))


@given(RATES, RATES, st.sampled_from([Poisson, Constant, lambda rate: Gamma(rate, 0.3)]))
def test_request_i_has_the_same_unit_gap_at_every_rate(slow: float, fast: float, process: Any) -> None:
    unit = [moments(process(rate), 50) * rate for rate in (slow, fast)]
    assert unit[0] == pytest.approx(unit[1], rel=1e-12)


@given(st.sampled_from(PROCESSES), st.lists(st.integers(0, 40), min_size=1, max_size=5))
def test_gaps_do_not_depend_on_how_many_are_drawn_at_a_time(process: OpenLoop, counts: list[int]) -> None:
    rng = Streams(5).stream("arrivals")
    pieces = np.concatenate([process.unit_gaps(rng, count) for count in counts])
    assert np.array_equal(pieces, process.unit_gaps(Streams(5).stream("arrivals"), sum(counts)))


@pytest.mark.parametrize("rate", [0, 0.0, -1.0, float("nan"), float("inf"), "fast", None, True])
@pytest.mark.parametrize("process", [Poisson, Constant, lambda rate: Gamma(rate, 0.5)])
def test_an_impossible_rate_is_refused(process: Any, rate: Any) -> None:
    with pytest.raises(ConfigError, match=r"workload\.arrivals\.rate_rps.*\(requests/s\)"):
        check(process(rate), "workload.arrivals")


@pytest.mark.parametrize("burstiness", [0, -0.5, float("nan"), float("inf")])
def test_an_impossible_burstiness_is_refused(burstiness: float) -> None:
    with pytest.raises(ConfigError, match=r"burstiness.*\(gamma shape\)"):
        check(Gamma(1.0, burstiness))


@pytest.mark.parametrize("users", [0, -3, 1.5, float("inf")])
def test_an_impossible_number_of_users_is_refused(users: Any) -> None:
    with pytest.raises(ConfigError, match=r"concurrency.*\(users\)"):
        check(ClosedLoop(users))


def test_a_burst_is_all_at_once() -> None:
    assert moments(Burst(), 5).tolist() == [0.0] * 5


def test_users_begin_evenly_over_the_ramp() -> None:
    assert [ClosedLoop(4, ramp_up_s=10.0).start_s(user) for user in range(4)] == [0.0, 2.5, 5.0, 7.5]
    assert [ClosedLoop(4).start_s(user) for user in range(4)] == [0.0] * 4


def test_think_times_are_constant_or_exponential_about_their_mean() -> None:
    def drawn(users: ClosedLoop, seed: int = 0) -> FloatArray:
        return np.fromiter(users.thoughts_s(Streams(seed).stream("think times")), float, SAMPLES)

    assert set(drawn(ClosedLoop(1, think_time_s=3.0))) == {3.0}
    assert set(drawn(ClosedLoop(1, think_time="exponential"))) == {0.0}
    thoughts_s = drawn(ClosedLoop(1, think_time_s=3.0, think_time="exponential"))
    assert_mean(thoughts_s, 3.0, 9.0)
    assert_variance(thoughts_s, 9.0)
    twice = drawn(ClosedLoop(9, think_time_s=6.0, think_time="exponential"))
    assert np.array_equal(twice, 2 * thoughts_s)


def test_whole_rates_and_one_user_are_fine() -> None:
    check(Poisson(4))
    check(ClosedLoop(1))
