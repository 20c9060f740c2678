"""Synthetic traffic: limits, common random numbers, batches."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim.check import ConfigError, check
from servesim.streams import Streams
from servesim.workload import synthetic
from servesim.workload.arrivals import Burst, ClosedLoop, Constant, Gamma, Poisson
from servesim.workload.batch import BATCH_ROWS, Batch
from servesim.workload.lengths import Fixed, Geometric
from servesim.workload.schedule import Schedule
from servesim.workload.synthetic import Synthetic
from servesim.workload.vllm_bench import VllmBench

LENGTHS = Geometric(500.0, 200.0)
ARRIVALS = [
    Poisson(4.0),
    Gamma(9.0, 0.2),
    Constant(0.5),
    Schedule([[0, 1], [60, 7]], 100.0),
    ClosedLoop(8),
    Burst(),
    VllmBench(4.0, 0.5),
    VllmBench(None, 1.0, "linear", 1.0, 9.0),
]


def sent(workload: Synthetic, seed: int = 0) -> Batch:
    """Return all requests of a workload as one batch."""
    return joined(workload.batches(Streams(seed)))


def joined(batches: Iterator[Batch]) -> Batch:
    empty = Batch(np.zeros(0), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    return Batch.joined([empty, *batches])


def equal(one: Batch, other: Batch) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one[:3], other[:3], strict=True))


@pytest.mark.parametrize("arrivals", ARRIVALS, ids=lambda arrivals: type(arrivals).__name__)
def test_without_a_limit_2000_requests_are_sent(arrivals: Any) -> None:
    assert sent(Synthetic(arrivals, LENGTHS)).size == 2000


@given(st.integers(1, 3 * BATCH_ROWS), st.sampled_from(ARRIVALS))
def test_requests_are_counted_exactly_in_batches_of_bounded_size(requests: int, arrivals: Any) -> None:
    sizes = [batch.size for batch in Synthetic(arrivals, LENGTHS, requests).batches(Streams(0))]
    assert sum(sizes) == requests
    assert all(0 < size <= BATCH_ROWS for size in sizes)


@given(st.floats(0.1, 5000))
def test_the_sending_stops_at_its_duration(duration_s: float) -> None:
    batch = sent(Synthetic(Constant(2.0), LENGTHS, duration_s=duration_s))
    assert batch.size == math.ceil(duration_s * 2.0) - 1  # sent at 0.5, 1.0, ..., before the end
    assert np.all(batch.sent_s < duration_s)


@given(st.integers(1, 20_000), st.floats(1, 5000))
def test_of_two_limits_the_first_reached_holds(requests: int, duration_s: float) -> None:
    counted = sent(Synthetic(Poisson(4.0), LENGTHS, requests))
    both = sent(Synthetic(Poisson(4.0), LENGTHS, requests, duration_s))
    assert equal(both, counted.until(None, duration_s))


@pytest.mark.parametrize("arrivals", ARRIVALS[1:], ids=lambda arrivals: type(arrivals).__name__)
def test_request_i_has_the_same_lengths_whatever_the_arrivals(arrivals: Any) -> None:
    first = sent(Synthetic(Poisson(4.0), LENGTHS, 10_000), seed=3)
    other = sent(Synthetic(arrivals, LENGTHS, 12_000), seed=3)
    assert np.array_equal(first.input_tokens, other.input_tokens[:10_000])
    assert np.array_equal(first.output_tokens, other.output_tokens[:10_000])


def test_request_i_is_sent_at_the_same_moment_whatever_the_lengths() -> None:
    one, other = (sent(Synthetic(Poisson(4.0), lengths, 10_000)) for lengths in (LENGTHS, Fixed(1, 1)))
    assert np.array_equal(one.sent_s, other.sent_s)


def test_arrivals_and_lengths_draw_from_streams_of_their_own() -> None:
    batch = sent(Synthetic(Poisson(1.0), LENGTHS, 500), seed=9)
    streams = Streams(9)
    gaps = streams.stream("arrivals").standard_exponential(500)
    tokens = LENGTHS.tokens(streams.stream("lengths").standard_normal((500, 2)))
    assert equal(batch, Batch(np.cumsum(gaps), *tokens))


def test_twice_the_rate_halves_every_moment() -> None:
    slow, fast = (sent(Synthetic(Gamma(rate, 0.5), LENGTHS, 20_000)) for rate in (3.0, 6.0))
    assert np.array_equal(slow.sent_s, 2 * fast.sent_s)


@pytest.mark.parametrize("rows", [1, 7, 1000])
@pytest.mark.parametrize("arrivals", ARRIVALS, ids=lambda arrivals: type(arrivals).__name__)
def test_the_size_of_the_batches_changes_no_bit(
    arrivals: Any, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = Synthetic(arrivals, LENGTHS)
    usual = sent(workload)
    monkeypatch.setattr(synthetic, "BATCH_ROWS", rows)
    assert equal(sent(workload), usual)


@given(st.integers(0, 2**40), st.sampled_from(ARRIVALS))
def test_requests_are_in_order_and_a_seed_repeats_them(seed: int, arrivals: Any) -> None:
    workload = Synthetic(arrivals, LENGTHS, BATCH_ROWS + 100)
    batch = sent(workload, seed)
    assert np.all(np.diff(batch.sent_s) >= 0)
    assert equal(batch, sent(workload, seed))
    assert not np.array_equal(batch.input_tokens, sent(workload, seed + 1).input_tokens)


def test_in_a_closed_loop_the_client_decides_when_to_send() -> None:
    workload = Synthetic(ClosedLoop(8), LENGTHS)
    assert (workload.open_loop, workload.concurrency) == (False, 8)
    assert not sent(workload).sent_s.any()


def test_a_closed_loop_with_a_duration_alone_never_runs_out_of_requests() -> None:
    batches = Synthetic(ClosedLoop(8), LENGTHS, duration_s=1.0).batches(Streams(0))
    assert [batch.size for batch in islice(batches, 5)] == [BATCH_ROWS] * 5


def test_open_loop_traffic_has_no_users_to_wait_for() -> None:
    workload = Synthetic(Poisson(1.0), LENGTHS)
    assert (workload.open_loop, workload.concurrency, workload.notes) == (True, None, None)


def test_a_duration_may_end_before_the_first_request() -> None:
    assert sent(Synthetic(Constant(1.0), LENGTHS, duration_s=0.5)).size == 0


def test_a_burst_needs_a_number_of_requests() -> None:
    """A duration would not end it; without any limit it has the usual number."""
    assert sent(Synthetic(Burst(), LENGTHS)).size == 2000
    assert not Synthetic(Burst(), LENGTHS).open_loop
    with pytest.raises(ConfigError, match="requests: must be given beside duration_s"):
        check(Synthetic(Burst(), LENGTHS, duration_s=1.0))


def test_every_problem_of_arrivals_lengths_and_limits_is_listed() -> None:
    workload = Synthetic(Poisson(0.0), Fixed(0, -1), 0, math.nan)
    with pytest.raises(ConfigError) as refused:
        check(workload, "workload")
    assert [problem.path for problem in refused.value.problems] == [
        "workload.arrivals.rate_rps",
        "workload.lengths.input",
        "workload.lengths.output",
        "workload.requests",
        "workload.duration_s",
    ]
