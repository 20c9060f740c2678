"""The timeline holds every leap and every request of its stretch, in well-formed events."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from servesim.report.run.timeline import REQUESTS, with_finish, write_timeline
from tests.report.run.runs import KINDS, made


def events_of(path: Path) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = json.loads(path.read_text())["traceEvents"]
    return events


@pytest.mark.parametrize("kind", KINDS)
def test_every_leap_is_a_slice_with_its_counters(kind: str, tmp_path: Path) -> None:
    run = made(kind)
    write_timeline(run, tmp_path / "t.json")
    events = events_of(tmp_path / "t.json")
    slices = [event for event in events if event["ph"] == "X"]
    assert [event["pid"] for event in slices] == list(run.steps.replica)
    np.testing.assert_array_equal([event["ts"] for event in slices], np.round(1e6 * run.steps.start_s, 3))
    assert sum(event["dur"] for event in slices) == pytest.approx(1e6 * run.steps.seconds.sum(), abs=1)
    for name, column in (("batch", "sequences"), ("queue", "waiting"), ("KV blocks", "kv_blocks")):
        counted = sum(event["args"][name] for event in events if event["ph"] == "C" and event["name"] == name)
        assert counted == run.steps[column].sum()
    preempted = sum(int(event["name"].split()[1]) for event in events if event["ph"] == "i")
    assert preempted == run.summary["accounting"]["preemptions"]
    names = {event["args"]["name"] for event in events if event["ph"] == "M"}
    assert len(names) == 1 + sum(pool.replicas for pool in run.pools)


@pytest.mark.parametrize("kind", KINDS)
def test_spans_of_a_request_are_nested_and_cover_its_time(kind: str, tmp_path: Path) -> None:
    run = made(kind)
    write_timeline(run, tmp_path / "t.json")
    spans: dict[int, list[dict[str, Any]]] = {}
    for event in events_of(tmp_path / "t.json"):
        if event["ph"] in "be":
            assert event["pid"] == REQUESTS
            spans.setdefault(event["id"], []).append(event)
    requests = with_finish(run).set_index("request_id")
    assert set(spans) == set(requests.index)
    for number, events in spans.items():
        opened: list[str] = []
        for event in events:
            if event["ph"] == "b":
                opened.append(event["name"])
            else:
                assert opened.pop() == event["name"]
        assert not opened
        times = [event["ts"] for event in events]
        assert times == sorted(times)
        request = requests.loc[number]
        assert times[0] == round(1e6 * request.sent_s, 3)
        assert times[-1] == round(1e6 * request.finish_s, 3)
        if request.status == "completed":
            ends = [event["ts"] for event in events if event["name"] == "prefill"]
            assert np.diff(ends)[0] == pytest.approx(1e6 * request.prefill_s, abs=0.01)
            parts = [event for event in events[1:-1] if event["name"] != "transfer"]
            covered = sum(event["ts"] if event["ph"] == "e" else -event["ts"] for event in parts)
            assert covered == pytest.approx(1e6 * request.e2e_s, abs=0.01)


def test_a_transfer_is_as_long_as_it_was(tmp_path: Path) -> None:
    run = made("disaggregated")
    write_timeline(run, tmp_path / "t.json")
    moves = [event for event in events_of(tmp_path / "t.json") if event["name"] == "transfer"]
    seconds = sum((event["ts"] if event["ph"] == "e" else -event["ts"]) for event in moves) / 1e6
    assert seconds == pytest.approx(run.requests.transfer_s.sum(), rel=1e-3)
    assert len(moves) == 2 * len(run.requests)


def test_a_stretch_has_what_overlaps_it(tmp_path: Path) -> None:
    run = made("continuous")
    middle_s = sum(run.span) / 2
    window = write_timeline(run, tmp_path / "t.json", middle_s, middle_s + 1)
    finished = with_finish(run)
    within = (finished.finish_s >= middle_s) & (finished.sent_s <= middle_s + 1)
    assert 0 < window.requests == within.sum() < len(run.requests)
    for event in events_of(tmp_path / "t.json"):
        if event["ph"] == "X":
            assert event["ts"] <= 1e6 * (middle_s + 1)
            assert event["ts"] + event["dur"] >= 1e6 * middle_s - 0.01


def test_a_file_is_bounded_and_says_what_it_left_out(tmp_path: Path) -> None:
    run = made("continuous")
    whole = write_timeline(run, tmp_path / "whole.json")
    part = write_timeline(run, tmp_path / "part.json", most=50)
    assert part.leaps + part.requests == 50
    assert part.left_out == whole.leaps + whole.requests - 50
    assert part.start_s < part.end_s < whole.end_s
    said = json.loads((tmp_path / "part.json").read_text())["otherData"]
    assert said == part._asdict()
    spans = [event["ts"] for event in events_of(tmp_path / "part.json") if event["ph"] in "Xb"]
    assert max(spans) <= 1e6 * run.span[1]


def test_the_same_run_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_timeline(made("continuous"), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
