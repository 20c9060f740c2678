"""MSER-5 finds a planted warm-up, and the steady part begins when the cluster is full."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim.engine.log import TIMED_OUT
from servesim.results.steady_state import mser5, steady_part
from servesim.results.window import Window
from tests.results.made import records, request, waiting


def test_mser5_cuts_off_a_planted_warm_up() -> None:
    """200 observations decay from 20 to the level of 1,800 others: the cut lies in the decay's tail."""
    rng = np.random.default_rng(1)
    level = 10 + rng.normal(size=2000)
    level[:200] += np.linspace(10, 0, 200)
    assert 120 <= mser5(level) <= 230


def test_mser5_leaves_stationary_noise_nearly_whole() -> None:
    """Over 50 samples of noise a median of at most 5% is cut."""
    rng = np.random.default_rng(2)
    assert np.median([mser5(rng.normal(size=2000)) for _ in range(50)]) <= 100


def test_mser5_is_the_minimum_of_its_definition() -> None:
    """The squared width of the interval of what is left, batch by batch, as the paper has it."""
    sample = np.random.default_rng(3).exponential(size=503) + np.exp(-np.arange(503) / 40)
    means = sample[:500].reshape(100, 5).mean(axis=1)
    widths = [((means[d:] - means[d:].mean()) ** 2).sum() / (100 - d) ** 2 for d in range(51)]
    assert mser5(sample) == 5 * int(np.argmin(widths))


@given(st.lists(st.floats(0, 1e3), max_size=100))
def test_mser5_cuts_whole_batches_and_at_most_half(sample: list[float]) -> None:
    cut = mser5(np.array(sample))
    assert cut % 5 == 0
    assert 0 <= cut <= len(sample) / 2


@pytest.mark.parametrize("sample", [[0.1] * 1000, [1 / 3] * 37, [], [1.0] * 9])
def test_nothing_is_cut_where_nothing_changes(sample: list[float]) -> None:
    assert mser5(np.array(sample)) == 0


def test_the_window_begins_with_the_later_cut_and_ends_with_the_last_send() -> None:
    """TTFT settles after 20 sends, E2E after 40; rows are in order of finishing, not of sending."""
    rows = [
        request(float(i), i + (2.0 if i < 20 else 1.0), i + (9.0 if i < 40 else 5.0), request_id=i)
        for i in range(200)
    ]
    assert steady_part(records(rows[::-1])) == (Window(40.0, 199.0), True)


def test_a_cluster_without_pressure_counts_from_when_it_is_full() -> None:
    """Latencies never change, but until 5 s fewer requests are under way than ever after."""
    rows = [request(float(i), i + 1.0, i + 5.0, request_id=i) for i in range(200)]
    assert steady_part(records(rows)) == (Window(5.0, 199.0), True)


def test_a_run_that_never_settles_says_so() -> None:
    """Each request takes a second longer than the one before: half the run goes, and it is not enough."""
    rows = [request(float(i), i + 1.0, 2.0 * i + 1.0, request_id=i) for i in range(200)]
    assert steady_part(records(rows)) == (Window(100.0, 199.0), False)


def test_those_who_hang_up_are_part_of_the_steady_part() -> None:
    """Ten answers come, then every client hangs up after 30 s: it is not the ten that say what is steady."""
    done = [request(float(i), i + 1.0, i + 2.0 + i, request_id=i) for i in range(10)]
    late = [waiting(float(i), request_id=i, status=TIMED_OUT, finished_s=i + 30.0) for i in range(10, 200)]
    assert steady_part(records(done + late)) == (Window(30.0, 199.0), True)


def test_what_comes_after_the_last_session_has_begun_is_drain() -> None:
    """A request a second up to 100 s, when the last session begins; its turns go on for as long again."""
    rows = [request(float(i), i + 1.0, i + 5.0, request_id=i) for i in range(200)]
    assert steady_part(records(rows), last_begun_s=100.0) == (Window(5.0, 100.0), True)
    assert steady_part(records(rows), 90.0, 100.0) == (Window(50.0, 100.0), False)
    assert steady_part(records(rows), last_begun_s=0.0) == steady_part(records(rows))
