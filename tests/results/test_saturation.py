"""Saturation is a number of requests in the system that grows for as long as they are sent."""

from __future__ import annotations

import numpy as np
import pytest

from servesim.engine.log import RUNNING
from servesim.results.records import Records
from servesim.results.saturation import saturated
from servesim.results.steady_state import steady_part
from tests.results.made import records, request, waiting


def verdict(made: Records) -> bool | None:
    """Return whether a run is saturated, as its summary has it."""
    return saturated(made, steady_part(made).window)


def served(step_s: float, number: int = 100) -> list[list[float]]:
    """Return requests sent every second and served one after the other in ``step_s`` each."""
    rows, free_s = [], 0.0
    for i in range(number):
        start_s = max(free_s, float(i))
        free_s = start_s + step_s
        rows.append(request(float(i), free_s, free_s, scheduled_s=start_s, request_id=i))
    return rows


def test_planted_growth_is_saturated() -> None:
    """Service takes twice as long as arrivals are apart: half of what arrives stays, and the queue grows."""
    made = records(served(2.0))
    assert verdict(made) is True


def test_a_server_with_time_to_spare_is_not_saturated() -> None:
    made = records(served(0.5))
    assert verdict(made) is False


def test_a_run_shorter_than_its_requests_tells_nothing_of_a_cluster_without_a_queue() -> None:
    """Each request is scheduled at once and takes longer than the run: nothing completes, nobody waits."""
    made = records([request(float(i), i + 1.0, i + 1000.0, request_id=i) for i in range(100)])
    assert verdict(made) is None


def test_a_queue_that_nobody_leaves_is_saturation() -> None:
    """One request holds the server, and the others queue until the horizon."""
    rows = [request(0.0, 1.0, status=RUNNING), *(waiting(i / 10, request_id=i) for i in range(1, 100))]
    made = records(rows)
    assert verdict(made) is True


def test_a_run_of_no_length_cannot_tell() -> None:
    """All sent at one moment, or nothing at all: there is no first and no last quarter."""
    for made in (records([request(0.0, 1.0, 2.0)] * 3), records([])):
        assert verdict(made) is None


def single_server(utilisation: float, number: int, seed: int) -> Records:
    """Return an M/D/1 queue: Poisson arrivals, one a second, each served in ``utilisation`` seconds."""
    rows, free_s = [], 0.0
    for i, at_s in enumerate(np.cumsum(np.random.default_rng(seed).exponential(size=number)).tolist()):
        start_s = max(free_s, at_s)
        free_s = start_s + utilisation
        rows.append(request(at_s, free_s, free_s, scheduled_s=start_s, request_id=i))
    return records(rows)


@pytest.mark.parametrize(("utilisation", "answer"), [(0.5, False), (0.8, False), (1.1, True), (1.5, True)])
def test_a_queue_with_random_arrivals(utilisation: float, answer: bool) -> None:
    """4,000 requests, 30 seeds: the verdict is right in all but chance's share of them."""
    right = sum(verdict(single_server(utilisation, 4000, seed)) is answer for seed in range(30))
    assert right >= 29


@pytest.mark.parametrize("number", [60, 100, 200, 1000])
@pytest.mark.parametrize("excess", [1.5, 2.0, 4.0])
def test_half_too_much_is_saturated_however_long_the_run(excess: float, number: int) -> None:
    """Chance may hide it in the shortest runs, where arrivals may happen to come at less than their rate."""
    verdicts = [verdict(single_server(excess, number, seed)) for seed in range(40)]
    assert verdicts.count(True) >= (40 if number >= 200 else 30)
    assert verdicts.count(False) <= 1


@pytest.mark.parametrize("number", [10, 50, 60, 100, 200, 1000])
def test_half_a_load_is_never_saturated_however_short_the_run(number: int) -> None:
    verdicts = [verdict(single_server(0.5, number, seed)) for seed in range(40)]
    assert verdicts.count(True) <= 1


def slots(number: int, count: int, service_s: float) -> Records:
    """Return a request a second on ``count`` slots that each hold one for ``service_s``, all filled at once.

    The slots are free again in waves, as where a batch begins and ends together.
    """
    rows, free_s = [], [0.0] * count
    for i in range(number):
        slot = int(np.argmin(free_s))
        start_s = max(free_s[slot], float(i))
        free_s[slot] = start_s + service_s
        rows.append(request(float(i), start_s + 1, free_s[slot], scheduled_s=start_s, request_id=i))
    return records(rows)


def test_a_queue_that_stands_still_between_two_waves_is_no_sign_of_stability() -> None:
    """40 slots held for 70 s carry 0.57 requests/s: of 1 request/s, 130 s see the queue stop for a while."""
    assert verdict(slots(130, 40, 70.0)) is True


def test_a_cluster_that_is_still_filling_is_not_saturated() -> None:
    """100 slots held for 80 s carry 1.25 requests/s; they fill for as long as 100 requests come."""
    assert verdict(slots(100, 100, 80.0)) is None
    assert verdict(slots(1000, 100, 80.0)) is False


def test_what_a_batch_keeps_waiting_is_no_sign_of_saturation() -> None:
    """Whole batches of 60 s: all that comes during one waits for its end, whatever the load."""
    rows = [request(0.0, 1.0, 60.0, scheduled_s=0.0)]
    rows += [request(float(i), 61.0, 120.0, scheduled_s=60.0, request_id=i) for i in range(1, 60)]
    made = records(rows)
    window = steady_part(made).window
    assert saturated(made, window, batched=True) is None
    assert saturated(made, window) is True


def test_a_small_excess_is_seen_when_the_run_is_long() -> None:
    """3% more arrives than is served: after 20,000 requests 600 are waiting."""
    sent_s = np.cumsum(np.random.default_rng(1).exponential(size=20_000))
    done_s = np.maximum.accumulate(sent_s - 1.03 * np.arange(20_000)) + 1.03 * (1 + np.arange(20_000))
    rows = [
        request(float(s), float(d), float(d), scheduled_s=float(d) - 1.03, request_id=i)
        for i, (s, d) in enumerate(zip(sent_s, done_s, strict=True))
    ]
    assert verdict(records(rows)) is True


def test_a_handful_of_requests_tells_nothing() -> None:
    """Ten are served at half the rate at which they come: no verdict."""
    assert verdict(records(served(2.0, number=10))) is None


def test_the_ramp_of_a_short_run_is_no_saturation() -> None:
    """Requests that take 5 s, sent one a second for 40 s, fill the system during the first eighth."""
    rows = [request(float(i), i + 1.0, i + 5.0, scheduled_s=i + i % 3 / 10, request_id=i) for i in range(40)]
    assert verdict(records(rows)) is False
