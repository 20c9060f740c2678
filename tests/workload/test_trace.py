"""Replaying a trace: order, window, scale, and an account of all that was changed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim import load
from servesim.check import ConfigError, check
from servesim.streams import Streams
from servesim.workload.arrivals import Poisson
from servesim.workload.batch import BATCH_ROWS, Batch
from servesim.workload.formats.options import TimedTrace
from servesim.workload.lengths import Fixed
from servesim.workload.notes import Notes
from servesim.workload.synthetic import Synthetic
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


def sent(workload: Trace | Synthetic) -> Batch:
    return Batch.joined(workload.batches(Streams(0)))


def counted(trace: Trace) -> Notes:
    """Return the counts of its notes."""
    return replace(trace.notes, remarks=())


def test_a_trace_is_sent_at_its_recorded_times_from_0(path: str) -> None:
    trace = Trace(path)
    check(trace)
    assert sent(trace).sent_s.tolist() == [10.0 * i for i in range(10)]
    assert sent(trace).input_tokens.tolist() == list(range(1, 11))
    assert sent(trace).output_tokens.tolist() == list(range(11, 21))
    assert (trace.open_loop, trace.concurrency) == (True, None)
    assert counted(trace) == Notes(10, 10, 0, 0, 0, 100.0)


def test_the_rate_is_multiplied(path: str) -> None:
    assert sent(Trace(path, rate_scale=4)).sent_s.tolist() == [2.5 * i for i in range(10)]


def test_all_at_once_keeps_the_order_and_the_window_of_the_recording(path: str) -> None:
    trace = Trace(path, at_once=True, start_s=15, duration_s=1.0)
    check(trace)
    assert sent(trace).sent_s.tolist() == [0.0] * 8
    assert sent(trace).input_tokens.tolist() == list(range(3, 11))
    assert (trace.open_loop, trace.notes.same_time) == (False, 0)


def test_a_window_counts_from_the_first_row_in_recorded_seconds(path: str) -> None:
    trace = Trace(path, start_s=15, end_s=50, rate_scale=2)
    assert sent(trace).input_tokens.tolist() == [3, 4, 5]
    assert sent(trace).sent_s.tolist() == [0.0, 5.0, 10.0]
    assert counted(trace) == Notes(10, 3, 0, 0, 0, 120.0)


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
    assert counted(trace) == Notes(5, 5, out_of_order=2, same_time=1, zero_outputs=0, shifted_s=3.0)


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
        assert all(np.array_equal(a, b) for a, b in zip(sent(one)[:3], sent(other)[:3], strict=True))
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
        "read as azure: TIMESTAMP (s), ContextTokens, GeneratedTokens",
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
        ({"format": "csv"}, "workload.format = 'csv': must be auto, azure, mooncake, .* or native"),
        ({"format": "burstgpt"}, "workload.path = .*: must name the columns Timestamp, Request tokens"),
        ({"rate_rps": 0}, "workload.rate_rps = 0: must be at least 1e-09"),
        ({"rate_rps": 1e-9}, "workload.rate_rps = 1e-09: stretches the trace to 1e.10 s"),
        ({"rate_rps": 1, "duration_s": 5}, "workload.duration_s = 5: does not go with rate_rps"),
        ({"rate_rps": 1, "at_once": True}, "workload.rate_rps = 1: does not go with at_once, which"),
        ({"rate_scale": 2, "at_once": True}, "workload.rate_scale = 2: does not go with at_once, which"),
        ({"rate_scale": 2, "rate_rps": 1, "at_once": True}, "2 problems in the input"),
        ({"tokenizer": "x.json"}, "workload.tokenizer = 'x.json': is for traces in the format sharegpt, not"),
        (
            {"timed_trace": TimedTrace(512)},
            "workload.timed_trace: is for traces in the format vllm_timed, not for azure",
        ),
        ({"characters_per_token": 5}, "workload.characters_per_token = 5: is for .* sharegpt, not for azure"),
        ({"timed_trace": TimedTrace(0)}, "workload.timed_trace.chunk_hash_size = 0: must be at least 1"),
        ({"characters_per_token": 0}, "workload.characters_per_token = 0: must be at least 0.1"),
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
    assert [column.mean() for column in sent(trace)[1:3]] == pytest.approx(means, abs=0.01)


def test_requests_of_a_trace_come_at_a_rate(path: str) -> None:
    """The moments are those of synthetic Poisson arrivals of the same seed, also across batches."""
    trace, poisson = Trace(path, rate_rps=4), Synthetic(Poisson(4), Fixed(1, 1), requests=10)
    check(trace)
    assert sent(trace).sent_s.tolist() == sent(poisson).sent_s.tolist()
    assert sent(trace).input_tokens.tolist() == list(range(1, 11))
    assert sent(replace(trace, rate_scale=2)).sent_s == pytest.approx(sent(trace).sent_s / 2)
    assert sent(replace(trace, start_s=15, requests=3)).input_tokens.tolist() == [3, 4, 5]
    assert trace.notes.lines()[1:] == ["recorded times left aside: Poisson at 4/s"]


def test_a_rate_is_drawn_alike_in_batches_of_any_size(tmp_path: Path) -> None:
    trace = Trace(write(tmp_path / "t", [(i, i + 1, 1) for i in range(BATCH_ROWS + 5)]), rate_rps=3)
    poisson = Synthetic(Poisson(3), Fixed(1, 1), requests=BATCH_ROWS + 5)
    assert sent(trace).sent_s.tolist() == sent(poisson).sent_s.tolist()


def test_a_file_without_times_is_sent_at_once_or_at_a_rate(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("num_prefill_tokens,num_decode_tokens\n10,3\n20,0\n")
    at_once, at_a_rate = (Trace(str(tmp_path / "t"), rate_rps=rate) for rate in (None, 2.0))
    assert sent(at_once).sent_s.tolist() == [0.0, 0.0]
    assert (at_once.timed, at_a_rate.timed) == (False, True)
    assert at_once.notes.lines()[1:] == [
        "no times in the file, so all is sent at once; workload.rate_rps sends at a rate",
        "requests with 0 output tokens, run as 1: 1",
    ]
    assert "no times in the file: Poisson at 2/s" in at_a_rate.notes.lines()
    assert len(set(sent(at_a_rate).sent_s)) == 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rate_scale": 2}, "workload.rate_scale = 2: has no rate to multiply: the file has no times"),
        ({"end_s": 9}, "workload.end_s = 9: cannot end a window: the file has no times"),
        ({"end_s": 9, "rate_rps": 1}, "workload.end_s = 9: cannot end a window"),
        ({"start_s": 9}, "workload.start_s = 9: no row is in the window"),
    ],
)
def test_what_a_file_without_times_cannot_follow_is_refused(
    settings: dict[str, Any], message: str, tmp_path: Path
) -> None:
    (tmp_path / "t").write_text("num_prefill_tokens,num_decode_tokens\n10,3\n20,0\n")
    with pytest.raises(ConfigError, match=message):
        check(Trace(str(tmp_path / "t"), **settings), "workload")
    check(Trace(str(tmp_path / "t"), rate_rps=1, rate_scale=2), "workload")


def test_rows_that_are_no_requests_are_counted(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("Timestamp,Request tokens,Response tokens\n0,5,3\n1,9,0\n2,5,4\n3,1,1\n")
    trace = Trace(str(tmp_path / "t"), requests=2)
    assert (trace.notes.rows, trace.notes.requests) == (4, 2)
    assert trace.notes.lines()[1:] == [
        "rows left out: 2 of 4",
        "of these failed requests (0 response tokens): 1",
    ]


def test_the_layout_of_a_timed_trace_is_set_key_by_key(tmp_path: Path) -> None:
    (tmp_path / "t").write_text('{"timestamp": 1000, "input_length": 9, "output_length": 1}\n')
    keys = ["chunk_hash_size=512", "sec_multiplier=0.001"]
    trace = load(
        "workload=trace",
        f"workload.path={tmp_path / 't'}",
        *(f"workload.timed_trace.{key}" for key in keys),
    ).workload
    assert isinstance(trace, Trace)
    assert trace.timed_trace == TimedTrace(512, 1e-3)
    assert trace.notes.remarks == ("read as vllm_timed: timestamp (ms), input_length, output_length",)
    assert trace.notes.shifted_s == 1.0
