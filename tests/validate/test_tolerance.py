"""Tolerances are read strictly, and what a run lacks is an error before anything runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from servesim.check import ConfigError
from servesim.screen.replays import knee_line
from servesim.validate.compare import Comparison
from servesim.validate.points import Point, Points
from servesim.validate.series import knee
from servesim.validate.tolerance import (
    OF_POINTS,
    OF_RUNS,
    Tolerance,
    check_points,
    check_runs,
    judged,
    measures_of_run,
    parsed,
)
from tests.validate.runs import small

RUN = small()


def test_limits_are_shares_of_1() -> None:
    assert parsed("ttft.mean=15% ttft.ks=0.1  throughput.requests=2.5%", OF_RUNS) == [
        Tolerance("ttft.mean", 0.15),
        Tolerance("ttft.ks", 0.1),
        Tolerance("throughput.requests", 0.025),
    ]
    assert parsed("tpot.mape=10% ttft.p50.bias=5%", OF_POINTS)[1] == Tolerance("ttft.p50.bias", 0.05)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ttft.men=15%", "did you mean ttft.mean"),
        ("ttft.mape=15%", "no such figure"),
        ("ttft.mean=15", "must be in per cent"),
        ("ttft.mean=-15%", "must be in per cent"),
        ("ttft.mean=1e1%", "must be in per cent"),
        ("ttft.mean", "must be in per cent"),
        ("ttft.ks=1.5", "must be a number up to 1"),
        ("throughput.requests=5", "throughput.requests=5%"),
        ("ttft.ks=0.1 ttft.ks=0.2", "is given twice"),
        ("  ", "names nothing"),
    ],
)
def test_what_is_no_tolerance_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parsed(text, OF_RUNS)


def test_every_wrong_word_is_listed() -> None:
    with pytest.raises(ConfigError) as caught:
        parsed("a=1% ttft.mean=15% b=2%", OF_RUNS)
    assert [problem.value for problem in caught.value.problems] == ["a=1%", "b=2%"]


def test_what_was_not_measured_has_no_tolerance() -> None:
    check_runs(parsed("ttft.mean=1% e2e.mdape=1% tpot.ks=1% throughput.requests=1%", OF_RUNS), [RUN])
    with pytest.raises(ConfigError, match="small has no measurement of it"):
        check_runs(parsed("itl.p99=5%", OF_RUNS), [RUN])
    points = Points("x", [Point(2, 1, 1, 1, None, {("ttft", "mean"): 1.0})], ())
    check_points(parsed("ttft.mape=5%", OF_POINTS), points)
    with pytest.raises(ConfigError, match="x has no column of it"):
        check_points(parsed("tpot.mape=5%", OF_POINTS), points)


def test_verdicts_are_of_absolute_values_and_the_limit_itself_is_met() -> None:
    faster = replace(RUN, ttft_s=RUN.ttft_s / 2)
    measures = measures_of_run(Comparison(RUN, faster))
    limits = {0.5: True, 0.49: False}
    for limit, met in limits.items():
        (verdict,) = judged([Tolerance("ttft.p50", limit)], "small", measures)
        assert verdict.value == -0.5
        assert verdict.met is met
    (unknown,) = judged([Tolerance("itl.p50", 1.0)], "small", measures)
    assert not unknown.met


def test_the_knee_is_the_lowest_rate_whose_tail_passes_the_limit() -> None:
    runs = []
    for rate in (4.0, 1.0, 2.0):
        measured = replace(RUN, request_rate=rate, ttft_s=np.full(RUN.requests, 0.3 * rate))
        runs.append(Comparison(measured, replace(measured, ttft_s=np.full(RUN.requests, 0.2 * rate))))
    found = knee(runs, 0.5)
    assert found is not None
    assert found.rates == (1.0, 2.0, 4.0)
    assert (found.measured_rps, found.simulated_rps, found.error) == (2.0, 4.0, 1.0)
    none = knee(runs, 9.0)
    assert none is not None
    assert (none.measured_rps, none.error) == (None, None)
    assert knee(runs[:1], 0.5) is None


def test_a_limit_that_the_lowest_rate_passes_has_its_knee_somewhere_below() -> None:
    runs = []
    for rate in (1.0, 2.0):
        measured = replace(RUN, request_rate=rate, ttft_s=np.full(RUN.requests, 0.3 * rate))
        runs.append(Comparison(measured, measured))
    found = knee(runs, 0.1)
    assert found is not None
    assert (found.measured_rps, found.simulated_rps, found.error) == (1.0, 1.0, None)
    assert "measured at 1/s or less, the lowest rate, simulated at 1/s or less" in knee_line(found)
