"""A curve of rates is followed exactly."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim.check import ConfigError, check
from servesim.streams import Streams
from servesim.workload.arrivals import Poisson
from servesim.workload.schedule import Schedule
from tests.workload.theory import SAMPLES, SIGMAS

DAY = Schedule([[0, 1.0], [6, 0.0], [8, 5.0], [12, 2.5]], 24.0)


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    lengths = draw(st.lists(st.floats(0.1, 50), min_size=1, max_size=6))
    rates = [draw(st.sampled_from([0.0, 0.25, 1.0, 8.5]) | st.floats(0.01, 100)) for _ in lengths]
    rates[-1] = rates[-1] or 1.0
    starts = [0.0, *np.cumsum(lengths).tolist()]
    repeated = draw(st.booleans())
    return Schedule(list(zip(starts[:-1], rates, strict=True)), starts[-1] if repeated else None)


def expected_requests(schedule: Schedule, time_s: float) -> float:
    """Integrate the rate from 0 to ``time_s``, row by row and period by period."""
    period = schedule.period_s or math.inf
    ends = [start for start, _ in schedule.rates[1:]] + [period]
    total, periods = 0.0, int(time_s // period)
    for (start, rate), end in zip(schedule.rates, ends, strict=True):
        if periods:
            total += periods * rate * (end - start)
        total += rate * min(
            max(time_s - periods * period - start if periods else time_s - start, 0), end - start
        )
    return total


@given(schedules(), st.lists(st.floats(1e-6, 20), min_size=1, max_size=60))
def test_the_rate_integrated_up_to_each_moment_gives_the_unit_rate_process_back(
    schedule: Schedule, gaps: list[float]
) -> None:
    """Time rescaling: L(t_i) = u_i, whatever the curve."""
    unit_times = np.cumsum(gaps)
    found = [expected_requests(schedule, time) for time in schedule.times(unit_times)]
    assert found == pytest.approx(unit_times.tolist(), rel=1e-9, abs=1e-9)


@given(schedules(), st.integers(0, 10**6))
def test_moments_are_in_order(schedule: Schedule, seed: int) -> None:
    unit_times = np.cumsum(schedule.unit_gaps(Streams(seed).stream("arrivals"), 2000))
    assert np.all(np.diff(schedule.times(unit_times)) >= 0)


def test_the_curve_shows_in_the_counts() -> None:
    """Each part of the day gets a Poisson number of requests: its mean within 4.5 standard errors."""
    times = DAY.times(np.cumsum(DAY.unit_gaps(Streams(1).stream("arrivals"), SAMPLES)))
    days = int(times[-1] // 24)
    hours = times[times < 24 * days] % 24
    for start, end, rate in [(0, 6, 1.0), (8, 12, 5.0), (12, 24, 2.5)]:
        mean = days * (end - start) * rate
        count = np.count_nonzero((start <= hours) & (hours < end))
        assert abs(count - mean) <= SIGMAS * np.sqrt(mean)


def test_nothing_is_sent_while_the_rate_is_0() -> None:
    times = DAY.times(np.cumsum(DAY.unit_gaps(Streams(2).stream("arrivals"), 20_000)))
    assert not np.any((times % 24 > 6) & (times % 24 < 8))


def test_a_flat_curve_is_poisson_request_by_request() -> None:
    gaps = Poisson(4.0).unit_gaps(Streams(3).stream("arrivals"), 1000)
    for flat in (Schedule([[0, 4.0]]), Schedule([[0, 4.0], [3, 4.0]], 7.0)):
        assert np.array_equal(flat.unit_gaps(Streams(3).stream("arrivals"), 1000), gaps)
        assert flat.times(np.cumsum(gaps)) == pytest.approx(Poisson(4.0).times(np.cumsum(gaps)), rel=1e-12)


def test_by_hand() -> None:
    """2 requests/s for 1 s, none for 1 s, 1 request/s for 2 s: 4 requests in a period of 4 s."""
    schedule = Schedule([[0, 2], [1, 0], [2, 1]], 4)
    moments = schedule.times(np.array([1.0, 1.5, 2.5, 3.5, 4.5, 8.0]))
    assert moments.tolist() == [0.5, 0.75, 2.5, 3.5, 4.25, 8.0]


def test_without_a_period_the_last_rate_holds_for_ever() -> None:
    assert Schedule([[0, 1], [10, 2]]).times(np.array([5.0, 10.0, 1010.0])).tolist() == [5.0, 10.0, 510.0]


@pytest.mark.parametrize(
    ("rates", "period_s", "message"),
    [
        ([], None, r"rates = \[\]: must be a list of rows"),
        ("fast", None, "rates = 'fast': must be a list of rows"),
        (4.0, None, "rates = 4.0: must be a list of rows"),
        ([[0, 1], [5]], None, r"rates\[1\] = \[5\]: must be \[start"),
        ([[0, 1], 5], None, r"rates\[1\] = 5: must be"),
        ([[0, -1]], None, r"rates\[0\].*at least 0"),
        ([[0, math.nan]], None, r"rates\[0\].*at least 0"),
        ([[0, math.inf]], None, r"rates\[0\].*at most"),
        ([[0, True]], None, r"rates\[0\]"),
        ([[1, 1]], None, r"rates\[0\].*start at 0 \(s\)"),
        ([[0, 1], [5, 1], [5, 2]], None, r"rates\[2\].*above 5 \(s\)"),
        ([[0, 1], [5, 1]], 5, r"period_s = 5: must be above .* 5 \(s\)"),
        ([[0, 1]], 0, "period_s = 0: must be"),
        ([[0, 1]], math.inf, "period_s = inf: must be"),
        ([[0, 0], [5, 0]], 10, "at least one rate must be above 0"),
        ([[0, 1], [5, 0]], None, r"rates\[1\].*for ever"),
    ],
)
def test_an_impossible_curve_is_refused(rates: Any, period_s: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check(Schedule(rates, period_s), "workload.arrivals")


def test_every_bad_row_is_listed() -> None:
    with pytest.raises(ConfigError) as refused:
        check(Schedule([[0, -1], [1, 2], ["x", 3]]))
    assert [problem.path for problem in refused.value.problems] == ["rates[0]", "rates[2]"]
    with pytest.raises(ConfigError) as refused:
        check(Schedule([[2, 1], [1, 2]], 1))
    assert [problem.path for problem in refused.value.problems] == ["rates[0]", "rates[1]", "period_s"]


def test_silence_for_a_part_of_a_period_is_fine() -> None:
    check(DAY)
    check(Schedule([[0, 1], [5, 0]], 10))
