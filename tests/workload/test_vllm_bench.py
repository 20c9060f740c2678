"""Arrivals as vllm bench serve draws them: the end that is promised, the ramp, common random numbers."""

from __future__ import annotations

import math
from itertools import islice
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim.check import ConfigError, check
from servesim.streams import Streams
from servesim.workload.arrivals import Gamma
from servesim.workload.batch import FloatArray
from servesim.workload.lengths import Fixed
from servesim.workload.synthetic import Synthetic
from servesim.workload.vllm_bench import VllmBench
from tests.workload.theory import SIGMAS

STEADY = 1e6  # a burstiness that leaves a scatter of 0.1% of a gap


def moments(arrivals: VllmBench, requests: int, seed: int = 0) -> FloatArray:
    batches = Synthetic(arrivals, Fixed(1, 1), requests).batches(Streams(seed))
    return np.concatenate([batch.sent_s for batch in batches])


def ramp(strategy: Any, start_rps: float, end_rps: float, burstiness: float = 1.0) -> VllmBench:
    return VllmBench(None, burstiness, strategy, start_rps, end_rps)


@given(st.integers(1, 20_000), st.floats(0.01, 100), st.sampled_from((0.1, 1.0, 7.0)), st.integers(0, 99))
def test_the_last_of_n_requests_is_due_at_n_over_the_rate(
    requests: int, rate_rps: float, burstiness: float, seed: int
) -> None:
    sent_s = moments(VllmBench(rate_rps, burstiness), requests, seed)
    assert len(sent_s) == requests
    assert sent_s[-1] == requests / rate_rps
    assert np.all(np.diff(sent_s) >= 0)


def test_a_single_request_is_due_after_a_gap() -> None:
    """As vLLM has it: the delay of the first request is a gap, too, and it is all there is to rescale."""
    assert moments(VllmBench(4.0), 1).tolist() == [0.25]


def test_rescaling_is_all_that_differs_from_gamma_gaps() -> None:
    sent_s = moments(VllmBench(4.0, 0.5), 10_000)
    gamma = np.cumsum(Gamma(4.0, 0.5).unit_gaps(Streams(0).stream("arrivals"), 10_000))
    assert sent_s == pytest.approx(gamma / gamma[-1] * 2500.0, rel=1e-12)


@given(st.floats(0.01, 100), st.integers(1, 9000))
def test_request_i_has_the_same_unit_gap_at_every_rate(rate_rps: float, requests: int) -> None:
    one, other = (moments(VllmBench(rate, 0.5), requests) * rate for rate in (1.0, rate_rps))
    assert one == pytest.approx(other, rel=1e-12)


@pytest.mark.parametrize("strategy", ["linear", "exponential"])
def test_a_ramp_divides_the_same_unit_gaps_by_its_rate(strategy: str) -> None:
    requests = 9000
    gaps = np.diff(moments(ramp(strategy, 2.0, 32.0), requests), prepend=0.0)
    unit = Streams(0).stream("arrivals").standard_gamma(1.0, requests)
    progress = np.arange(requests) / (requests - 1)
    rates = 2.0 + 30.0 * progress if strategy == "linear" else 2.0 * 16.0**progress
    assert gaps == pytest.approx(unit / rates, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(
    ("strategy", "expected_s"),
    [
        ("linear", 10_000 * math.log(16) / 30),  # N times the integral of 1 / (2 + 30 p) over p from 0 to 1
        ("exponential", 10_000 * (1 / 2 - 1 / 32) / math.log(16)),  # ... of 16^-p / 2
    ],
)
def test_the_rate_of_a_ramp_integrates_to_its_length(strategy: str, expected_s: float) -> None:
    """Steady gaps exactly, but for the sum that stands for an integral (1e-4); gamma gaps by chance."""
    assert moments(ramp(strategy, 2.0, 32.0, STEADY), 10_000)[-1] == pytest.approx(expected_s, rel=5e-4)
    last_s = np.array([moments(ramp(strategy, 2.0, 32.0), 10_000, seed)[-1] for seed in range(10)])
    assert abs(last_s.mean() / expected_s - 1) <= SIGMAS * 1.5 / math.sqrt(10 * 10_000)


def test_a_ramp_goes_down_as_well_as_up() -> None:
    gaps = np.diff(moments(ramp("linear", 10.0, 1.0, STEADY), 1000))
    assert gaps[0] == pytest.approx(0.1, rel=0.01)
    assert gaps[-1] == pytest.approx(1.0, rel=0.01)


@given(st.integers(1, 50), st.sampled_from((VllmBench(3.0, 0.5), ramp("linear", 1.0, 9.0))))
def test_the_size_of_the_batches_changes_no_bit(rows: int, arrivals: VllmBench) -> None:
    def pieces(rows: int) -> FloatArray:
        fresh = Streams(1)
        found = arrivals.moments(lambda: fresh.stream("arrivals"), 100, rows)
        return np.concatenate(list(islice(found, -(-100 // rows))))[:100]

    assert np.array_equal(pieces(rows), pieces(8192))


@pytest.mark.parametrize(
    ("arrivals", "wrong"),
    [
        (VllmBench(), {"rate_rps"}),
        (
            VllmBench(4.0, ramp_up_start_rps=1.0, ramp_up_end_rps=2.0),
            {"ramp_up_start_rps", "ramp_up_end_rps"},
        ),
        (VllmBench(4.0, 1.0, "linear", 1.0, 2.0), {"rate_rps"}),
        (VllmBench(None, 1.0, "linear", 1.0), {"ramp_up_end_rps"}),
        (VllmBench(None, 1.0, "exponential", 0.0, 2.0), {"ramp_up_start_rps"}),
        (VllmBench(4.0, 0.0), {"burstiness"}),
    ],
)
def test_a_rate_or_a_ramp_and_both_its_ends(arrivals: VllmBench, wrong: set[str]) -> None:
    with pytest.raises(ConfigError) as refused:
        check(arrivals)
    assert {problem.path for problem in refused.value.problems} == wrong


def test_it_is_for_a_number_of_requests() -> None:
    """Which a duration may cut, but not replace."""
    with pytest.raises(ConfigError, match=r"requests: must be given beside duration_s"):
        check(Synthetic(VllmBench(4.0), Fixed(1, 1), duration_s=10.0))
    cut = Synthetic(VllmBench(4.0), Fixed(1, 1), requests=100, duration_s=10.0)
    check(cut)
    assert np.concatenate([batch.sent_s for batch in cut.batches(Streams(0))]).max() < 10.0
    with pytest.raises(ConfigError, match="take more than"):
        check(Synthetic(ramp("linear", 1e-9, 1.0), Fixed(1, 1), requests=100))
