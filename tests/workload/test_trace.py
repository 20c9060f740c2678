"""Replaying a trace: order, window, scale, and an account of all that was changed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim.check import ConfigError, check
from servesim.streams import Streams
from servesim.workload.batch import BATCH_ROWS, Batch
from servesim.workload.notes import Notes
from servesim.workload.trace import Trace
from tests.shared import shared_data

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"


def write(path: Path, rows: Sequence[tuple[Any, int, int]]) -> str:
    path.write_text(
        HEADER + "".join(f"{time},{tokens_in},{out}\r\n" for time, tokens_in, out in rows), newline=""
    )
    return str(path)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Ten requests, one every 10 s from 100 s on, of 1 to 10 tokens in and 11 to 20 out."""
    return write(tmp_path / "trace.csv", [(100 + 10 * i, i + 1, i + 11) for i in range(10)])


def sent(trace: Trace) -> Batch:
    return Batch(*(np.concatenate(column) for column in zip(*trace.batches(Streams(0)), strict=True)))


def test_a_trace_is_sent_at_its_recorded_times_from_0(path: str) -> None:
    trace = Trace(path)
    check(trace)
    assert sent(trace).sent_s.tolist() == [10.0 * i for i in range(10)]
    assert sent(trace).input_tokens.tolist() == list(range(1, 11))
    assert sent(trace).output_tokens.tolist() == list(range(11, 21))
    assert (trace.open_loop, trace.concurrency) == (True, None)
    assert trace.notes == Notes(10, 10, 0, 0, 0, 100.0)


def test_the_rate_is_multiplied(path: str) -> None:
    assert sent(Trace(path, rate_scale=4)).sent_s.tolist() == [2.5 * i for i in range(10)]


def test_all_at_once_keeps_the_order_and_the_window_of_the_recording(path: str) -> None:
    trace = Trace(path, at_once=True, start_s=15, rate_scale=2, duration_s=1.0)
    check(trace)
    assert sent(trace).sent_s.tolist() == [0.0] * 8
    assert sent(trace).input_tokens.tolist() == list(range(3, 11))
    assert (trace.open_loop, trace.notes.same_time) == (False, 0)


def test_a_window_counts_from_the_first_row_in_recorded_seconds(path: str) -> None:
    trace = Trace(path, start_s=15, end_s=50, rate_scale=2)
    assert sent(trace).input_tokens.tolist() == [3, 4, 5]
    assert sent(trace).sent_s.tolist() == [0.0, 5.0, 10.0]
    assert trace.notes == Notes(10, 3, 0, 0, 0, 120.0)


def test_a_window_includes_its_start_but_not_its_end(path: str) -> None:
    assert sent(Trace(path, start_s=20, end_s=40)).input_tokens.tolist() == [3, 4]


def test_the_first_limit_reached_ends_the_sending(path: str) -> None:
    assert sent(Trace(path, requests=4)).size == 4
    assert sent(Trace(path, requests=40)).size == 10
    assert sent(Trace(path, duration_s=50.0)).size == 5
    assert sent(Trace(path, duration_s=50.0, rate_scale=2)).size == 10
    assert sent(Trace(path, requests=4, duration_s=20.0)).size == 2
    assert Trace(path, requests=4).notes.requests == 4


def test_unsorted_rows_are_sorted_and_counted(tmp_path: Path) -> None:
    trace = Trace(write(tmp_path / "t", [(7, 1, 1), (3, 2, 2), (9, 3, 3), (3, 4, 4), (4, 5, 5)]))
    assert sent(trace).sent_s.tolist() == [0.0, 0.0, 1.0, 4.0, 6.0]
    assert sent(trace).input_tokens.tolist() == [2, 4, 5, 1, 3]
    assert trace.notes == Notes(5, 5, out_of_order=2, same_time=1, zero_outputs=0, shifted_s=3.0)


def test_rows_of_one_time_keep_their_order(tmp_path: Path) -> None:
    trace = Trace(write(tmp_path / "t", [(row % 2, row + 1, 1) for row in range(1000)]))
    assert sent(trace).input_tokens.tolist() == [*range(1, 1001, 2), *range(2, 1001, 2)]


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=40, unique=True), st.randoms())
def test_the_order_of_the_rows_does_not_matter(microseconds: list[int], chance: random.Random) -> None:
    times = np.array(sorted(microseconds)) / 1e6
    rows = [(time, i + 1, i) for i, time in enumerate(times)]
    shuffled = chance.sample(rows, len(rows))
    with TemporaryDirectory() as folder:
        one, other = Trace(write(Path(folder, "one"), rows)), Trace(write(Path(folder, "other"), shuffled))
        assert all(np.array_equal(a, b) for a, b in zip(sent(one), sent(other), strict=True))
        assert np.all(np.diff(sent(other).sent_s) >= 0)
        assert sent(other).sent_s == pytest.approx(times - times[0], abs=1e-9)


def test_requests_of_0_output_tokens_run_as_1(tmp_path: Path) -> None:
    trace = Trace(write(tmp_path / "t", [(0, 5, 0), (1, 5, 1), (2, 5, 2), (3, 5, 0)]), end_s=3)
    assert sent(trace).output_tokens.tolist() == [1, 1, 2]
    assert trace.notes.zero_outputs == 1


def test_epoch_times_keep_their_100_nanoseconds(tmp_path: Path) -> None:
    """As a double, 1,700,158,546.6805901 s would be off by up to 120 ns."""
    times = ["2023-11-16 18:15:46.6805901", "2023-11-16 18:15:46.6805902", "2023-11-16 18:15:50.9951690"]
    trace = Trace(write(tmp_path / "t", [(time, 1, 1) for time in times]))
    assert sent(trace).sent_s.tolist() == [0.0, 1e-7, 4.3145789]
    assert trace.notes.shifted_s == pytest.approx(1_700_158_546.6805901)


def test_a_long_trace_comes_in_batches(tmp_path: Path) -> None:
    trace = Trace(write(tmp_path / "t", [(i, i + 1, 1) for i in range(2 * BATCH_ROWS + 5)]))
    assert [batch.size for batch in trace.batches(Streams(0))] == [BATCH_ROWS, BATCH_ROWS, 5]
    assert sent(trace).input_tokens.tolist() == list(range(1, 2 * BATCH_ROWS + 6))


def test_the_file_is_read_once(path: str) -> None:
    trace = Trace(path)
    check(trace)
    Path(path).unlink()
    assert sent(trace).size == 10


def test_all_that_was_done_is_said(tmp_path: Path) -> None:
    trace = Trace(write(tmp_path / "t", [(2000, 1, 0), (1000, 2, 2), (1000, 3, 3), (3000, 4, 4)]), requests=3)
    assert trace.notes.lines() == [
        "rows left out: 1 of 4",
        "rows out of order, sorted by time: 1",
        "requests at the same time as the one before: 1",
        "requests with 0 output tokens, run as 1: 1",
        "times counted from the first request, recorded at 1,000.000 s",
    ]
    assert trace.notes.as_dict() == {
        "rows": 4,
        "requests": 3,
        "out_of_order": 1,
        "same_time": 1,
        "zero_outputs": 1,
        "shifted_s": 1000.0,
    }


def test_a_date_is_not_told_in_seconds() -> None:
    notes = Notes(10, 10, 0, 0, 0, shifted_s=1_700_158_546.68)
    assert notes.lines() == ["times counted from the first request"]


def test_nothing_done_is_not_talked_about() -> None:
    assert Notes(10, 10, 0, 0, 0, 0.0).lines() == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rate_scale": 0}, "workload.rate_scale = 0: must be at least 1e-09 and"),
        ({"rate_scale": float("inf")}, "workload.rate_scale = inf: must be"),
        ({"start_s": -1}, r"workload.start_s = -1: must be at least 0 and at most 1e.09 \(s\)"),
        ({"start_s": 50, "end_s": 50}, r"workload.end_s = 50: must be above start_s, 50 \(s\)"),
        ({"start_s": 91}, r"workload.start_s = 91: no row is in the window .*90 s long"),
        ({"start_s": 11, "end_s": 19}, r"workload.start_s = 11: no row"),
        ({"requests": 0}, r"workload.requests = 0: must be at least 1 and at most 1e.09 \(requests\)"),
        ({"duration_s": 0}, r"workload.duration_s = 0: must be above 0 and at most 1e.09 \(s\)"),
        ({"format": "burstgpt"}, "workload.format = 'burstgpt': must be auto or azure"),
    ],
)
def test_impossible_settings_are_refused(path: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check(Trace(path, **settings), "workload")


def test_a_path_may_start_at_home(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(Path(path).parent))
    assert sent(Trace("~/trace.csv")).size == 10


def test_what_is_wrong_with_the_file_is_a_problem_of_the_configuration(tmp_path: Path) -> None:
    path = write(tmp_path / "t", [("nan", 0, 1), (1, 1, 1)])
    with pytest.raises(ConfigError) as refused:
        check(Trace(path), "workload")
    assert [problem.path for problem in refused.value.problems] == [
        "workload.path, line 2, TIMESTAMP",
        "workload.path, line 2, ContextTokens",
    ]


@pytest.mark.parametrize("path", ["absent.csv", "", "/dev/null"])
def test_an_unusable_path_is_one_clear_problem(path: str) -> None:
    with pytest.raises(ConfigError, match=r"1 problem in the input:\n  workload.path = "):
        check(Trace(path), "workload")


def test_a_path_must_be_given() -> None:
    with pytest.raises(ConfigError, match=r"workload.path: must be text \(the path of a trace file\)"):
        check(Trace(None), "workload")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "requests", "seconds", "means"),
    [("conv", 19_366, 3501.72, (1154.70, 211.13)), ("code", 8819, 3435.95, (2047.85, 27.88))],
)
def test_the_azure_traces_are_replayed_whole(
    name: str, requests: int, seconds: float, means: tuple[float, float]
) -> None:
    trace = Trace(str(shared_data("traces", f"AzureLLMInferenceTrace_{name}.csv")))
    assert trace.notes.requests == trace.notes.rows == sent(trace).size == requests
    assert trace.notes.out_of_order == trace.notes.zero_outputs == 0
    assert sent(trace).sent_s[-1] == pytest.approx(seconds, abs=0.01)
    assert [column.mean() for column in sent(trace)[1:]] == pytest.approx(means, abs=0.01)
