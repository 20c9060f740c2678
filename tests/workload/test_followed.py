"""Turns of a trace that follow each other: when each is sent, what its prompt is, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from servesim.check import ConfigError, check
from servesim.engine.continuous import Continuous
from servesim.streams import Streams
from servesim.workload.batch import Batch
from servesim.workload.client import Client
from servesim.workload.formats import read
from servesim.workload.recorded import RecordedSessions
from servesim.workload.trace import Trace
from tests.costs import constant_step
from tests.serving import Run, Service
from tests.workload.formats.samples import lines

#: An answer of n tokens takes n seconds, whoever else is served.
CLOCKWORK = Service(Continuous(block_size=4), constant_step(1.0))
ROWS: list[dict[str, object]] = [
    {"session_id": "a", "timestamp": 1000, "input_length": 10, "output_length": 4},
    {"session_id": "b", "timestamp": 3000, "input_length": 20, "output_length": 2},
    {"session_id": "a", "delay": 500, "input_length": 5, "output_length": 3},
    {"session_id": "b", "timestamp": 4000, "input_length": 6, "output_length": 1},
    {"session_id": "a", "timestamp": 21_000, "delay_ms": 250.5, "input_length": 7, "output_length": 2},
    {"timestamp": 5000, "input_length": 9, "output_length": 1},
]
#: The same with blocks, of which later prompts begin with all of the earlier ones.
WHOLE: list[dict[str, object]] = [
    {"session_id": 1, "timestamp": 0, "input_length": 600, "output_length": 2, "hash_ids": [0, 1]},
    {"session_id": 2, "timestamp": 0, "input_length": 520, "output_length": 2, "hash_ids": [0, 9]},
    {"session_id": 1, "delay": 3, "input_length": 1100, "output_length": 2, "hash_ids": [0, 1, 2]},
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "trace.jsonl").write_text(lines(*ROWS))
    return tmp_path / "trace.jsonl"


def recorded(trace: Trace) -> RecordedSessions:
    check(trace)
    assert trace.recorded is not None
    return trace.recorded


def replayed(trace: Trace, service: Service = CLOCKWORK, **options: Any) -> Run:
    return service.serve(recorded(trace), **options)


def turns(run: Run, *names: str) -> dict[tuple[int, ...], Any]:
    """Return a field of each request, or several, by session and turn."""
    rows = {(int(row["session"]), int(row["turn"])): [row[name] for name in names] for row in run.requests}
    return {place: values[0] if len(names) == 1 else values for place, values in sorted(rows.items())}


@pytest.mark.parametrize(("rate_scale", "last_s"), [(1.0, 20.0), (4.0, 7.7505)])
def test_a_turn_waits_for_the_answer_its_delay_and_its_time(
    path: Path, rate_scale: float, last_s: float
) -> None:
    """An answer takes as many seconds as it has tokens, or one step more; times are scaled, delays not."""
    run = replayed(Trace(str(path), rate_scale=rate_scale))
    sent_s, ended_s = turns(run, "sent_s"), turns(run, "finished_s")
    begun_s = [moment for (_, turn), moment in sent_s.items() if not turn]
    assert begun_s == pytest.approx([0.0, 2 / rate_scale, 4 / rate_scale])
    assert sent_s[0, 1] == pytest.approx(ended_s[0, 0] + 0.5, abs=1e-6)
    assert sent_s[1, 1] == pytest.approx(ended_s[1, 0], abs=1e-6)
    assert sent_s[0, 2] == pytest.approx(max(ended_s[0, 1] + 0.2505, 20 / rate_scale), abs=1e-6)
    assert last_s <= sent_s[0, 2] <= last_s + 2


def test_what_is_new_comes_behind_all_that_was_said(path: Path) -> None:
    """And an endless cache has all of it, but for what fills no block of four and the newest token."""
    run = replayed(Trace(str(path)))
    assert list(turns(run, "input_tokens").values()) == [10, 19, 29, 20, 28, 9]
    assert list(turns(run, "cached_tokens").values()) == [0, 12, 20, 0, 20, 0]
    alone = replayed(Trace(str(path), prefix_sharing=False))
    assert set(turns(alone, "cached_tokens").values()) == {0}


def test_whole_prompts_are_as_long_as_they_say_and_share_their_blocks(tmp_path: Path) -> None:
    (tmp_path / "t").write_text(lines(*WHOLE))
    run = replayed(trace := Trace(str(tmp_path / "t")))
    assert turns(run, "input_tokens", "cached_tokens") == {
        (0, 0): [600, 0], (0, 1): [1100, 600], (1, 0): [520, 512],
    }  # fmt: skip
    assert "prompts of later turns: whole (workload.turn_inputs)" in trace.notes.lines()
    new = replayed(Trace(str(tmp_path / "t"), turn_inputs="new"))
    assert turns(new, "input_tokens", "cached_tokens") == {
        (0, 0): [600, 0], (0, 1): [1702, 600], (1, 0): [520, 512],
    }  # fmt: skip


@pytest.mark.parametrize(
    "other",
    [
        [*WHOLE[:2], WHOLE[2] | {"input_length": 500, "hash_ids": [7]}],
        [WHOLE[0] | {"hash_ids": []}, *WHOLE[1:]],
        [*WHOLE[:2], WHOLE[2] | {"hash_ids": []}],
    ],
)
def test_prompts_are_new_where_blocks_do_not_begin_like_those_of_the_first(
    tmp_path: Path, other: Sequence[dict[str, object]]
) -> None:
    (tmp_path / "t").write_text(lines(*other))
    assert not recorded(Trace(str(tmp_path / "t"))).whole


def test_whole_prompts_without_blocks_find_what_was_said(tmp_path: Path) -> None:
    """All of it in blocks of one token, nothing where a prompt has no room for it, and nothing of others."""
    lengths = [(10, 4), (20, 3), (22, 0), (23, 5), (9, 5), (14, 2), (15, 9)]
    rows = [{"session_id": name, "input_length": i, "output_length": o} for i, o in lengths for name in "ab"]
    (tmp_path / "t").write_text(lines(*rows))
    service = replace(CLOCKWORK, scheduler=Continuous(block_size=1))
    found = turns(replayed(Trace(str(tmp_path / "t"), turn_inputs="whole"), service), "cached_tokens")
    said = [prompt + answer - 1 for prompt, answer in ((i, max(o, 1)) for i, o in lengths)]
    for (_, turn), cached in found.items():
        prompt, before = lengths[turn][0], said[turn - 1] if turn else 0
        assert cached == (min(before, prompt - 1) if prompt >= before else 0)
    alone = Trace(str(tmp_path / "t"), turn_inputs="whole", prefix_sharing=False)
    assert set(turns(replayed(alone, service), "cached_tokens").values()) == {0}
    assert {each.stream for own in recorded(alone).conversations(Streams(0)) for each in own.origins} == {
        None
    }


def test_whole_prompts_that_do_not_grow_are_all_sent(tmp_path: Path) -> None:
    """However many turns a session has beyond the tokens that one of its prompts may have."""
    (tmp_path / "t").write_text(lines(*[{"session_id": "a", "input_length": 3, "output_length": 2}] * 50))
    service = replace(CLOCKWORK, max_model_len=10)
    run = replayed(Trace(str(tmp_path / "t"), turn_inputs="whole"), service)
    assert len(run.requests) == run.client.ends.requests_meant == 50
    assert run.client.ends.completed == 1
    one = Trace(str(tmp_path / "t")).notes.lines()
    assert "1 session: later turns wait for answers (workload.follow_turns)" in one


@pytest.mark.parametrize(
    ("later", "options", "words"),
    [
        ([{"timestamp": 8e12}], {"rate_scale": 0.25}, "rate_scale = 0.25: stretches the trace to 3.2e+10 s"),
        ([{"timestamp": 8e12}], {"rate_scale": 0.25, "rate_rps": 1}, "rate_scale = 0.25: stretches"),
        (
            [{"delay": 6e11}, {"delay": 6e11}],
            {"at_once": True},
            "has delays that stretch the trace to 1.2e+09 s",
        ),
        ([{"timestamp": 6e11}, {"delay": 6e11}], {}, "has delays that stretch the trace to 1.2e+09 s"),
        ([{"timestamp": 6e11}, {"delay": 6e11}, {"timestamp": 7e11}], {"rate_scale": 2}, ""),
        ([{"delay": 6e11}, {"timestamp": 9e11}], {}, ""),
    ],
)
def test_no_turn_waits_for_longer_than_a_clock_shows(
    tmp_path: Path, later: Sequence[dict[str, object]], options: dict[str, Any], words: str
) -> None:
    lengths = {"input_length": 1, "output_length": 1}
    other = lengths | {"session_id": "b", "timestamp": 0}
    first = lengths | {"session_id": "a", "timestamp": 0}
    rows = [other, first, *(first | {"timestamp": None} | row for row in later), other | {"delay": 9e11}]
    (tmp_path / "t").write_text(lines(*rows))
    trace = Trace(str(tmp_path / "t"), **options)
    if not words:
        check(trace)
        return
    with pytest.raises(ConfigError, match=re.escape(words)):
        check(trace)


def test_without_times_all_sessions_begin_at_once_or_at_a_rate(tmp_path: Path) -> None:
    rows = [{key: value for key, value in row.items() if key != "timestamp"} for row in ROWS]
    (tmp_path / "t").write_text(lines(*rows))
    sent_s = turns(replayed(Trace(str(tmp_path / "t"))), "sent_s")
    assert [moment for (_, turn), moment in sent_s.items() if not turn] == [0.0] * 3
    drawn = recorded(Trace(str(tmp_path / "t"), rate_rps=0.5))
    assert list(drawn.starts_s(Streams(3))) == sorted(drawn.starts_s(Streams(3)))
    assert 0.0 not in drawn.starts_s(Streams(3))


@pytest.mark.parametrize("options", [{}, {"requests": 4}, {"start_s": 1.5}, {"start_s": 1.5, "end_s": 3.0}])
def test_what_is_sent_and_not_sent_is_what_was_asked_for(path: Path, options: dict[str, Any]) -> None:
    trace = Trace(str(path), **options)
    whole = len(replayed(trace).requests)
    assert whole == trace.notes.requests == {(): 6, ("requests",): 4, ("start_s",): 3}.get(tuple(options), 2)
    for horizon_s in (0.0, 1.5, 4.2, 7.0):
        cut = replayed(trace, horizon_s=horizon_s)
        assert len(cut.requests) + cut.client.remaining() == whole


def test_rows_are_sent_at_their_times_where_nobody_follows_turns(tmp_path: Path) -> None:
    """As from a file that tells no sessions; so are those whose sessions have one turn each."""
    dated = [row | {"timestamp": row.get("timestamp", 9000)} for row in ROWS]
    plain = [{key: row[key] for key in ("timestamp", "input_length", "output_length")} for row in dated]
    single = [row | {"session_id": place} for place, row in enumerate(plain)]
    sent = []
    for name, rows, follow in (("dated", dated, False), ("plain", plain, True), ("single", single, True)):
        (tmp_path / name).write_text(lines(*rows))
        trace = Trace(str(tmp_path / name), follow_turns=follow)
        check(trace)
        assert trace.recorded is None
        sent.append([column.tolist() for column in Batch.joined(trace.batches(Streams(0)))[:3]])
    assert sent[0] == sent[1] == sent[2]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ([{"session_id": 1.5, "timestamp": 1}], "line 7, session_id = 1.5: must be text or a whole number"),
        ([{"session_id": "a", "delay": -1}], "line 7, delay = -1: must be a number from 0 to"),
        ([{"session_id": "a", "delay_ms": "1"}], "line 7, delay_ms = '1': must be a number from 0 to"),
        ([{"session_id": "a", "delay": float("nan")}], "delay = nan: must be a number"),
        (
            [{"session_id": "c", "timestamp": 1, "delay": 5}],
            "line 7, delay = 5: stands before the first turn",
        ),
        ([{"delay": 5, "timestamp": 3}] * 2, "has a delay that stands before the first turn of its session"),
        ([{"session_id": "c"}], "line 7, timestamp: must be a number"),
        ([{"session_id": "c", "timestamp": -1}, {"session_id": "c", "delay": 2}], "line 7, timestamp = -1"),
        ([{"session_id": "c", "timestamp": 10**400}, {"session_id": "c", "delay": 0.5}], "line 7, timestamp"),
        ([{"session_id": "c"}, {"session_id": "c", "delay": 2}], "line 7, timestamp: must be a number"),
        ([{"timestamp": 1, "wait_for": ["x"]}], "waiting for others by name is not modelled"),
    ],
)
def test_what_cannot_be_followed_is_refused(
    path: Path, more: Sequence[dict[str, object]], words: str
) -> None:
    lengths = {"input_length": 1, "output_length": 1}
    path.write_text(lines(*ROWS, *(lengths | row for row in more)))
    with pytest.raises(ConfigError) as caught:
        read(path, "mooncake")
    assert len(caught.value.problems) == 1
    assert words in str(caught.value)


def test_faults_are_told_in_the_order_of_the_file(path: Path) -> None:
    """Those of sessions among those of lengths and times, and the first ones where there are too many."""
    bad = [{"timestamp": -1, "delay": -1, "input_length": 1, "output_length": 1}, {"input_length": 0}]
    path.write_text(lines(*[ROWS[0] | more | {"session_id": "a"} for more in bad * 15]))
    with pytest.raises(ConfigError) as caught:
        read(path, "mooncake")
    told = [problem.path.split(", ")[1:] for problem in caught.value.problems[:-1]]
    three = [("1", "delay"), ("1", "timestamp"), ("2", "input_length")]
    assert told[:3] == [[f"line {line}", key] for line, key in three]
    assert [place for place, *_ in told] == [f"line {2 * n + k}" for n in range(7) for k in (1, 1, 2)][:20]
    assert str(caught.value.problems[-1]).endswith("25 more values are wrong")


def test_settings_that_the_file_has_nothing_for_are_refused(path: Path, tmp_path: Path) -> None:
    (tmp_path / "t").write_text(lines({"timestamp": 0, "input_length": 1, "output_length": 1}))
    for trace, words in (
        (Trace(str(tmp_path / "t"), turn_inputs="whole"), "turn_inputs = 'whole': is for traces that tell"),
        (Trace(str(path), follow_turns=False), "and 1 have none: they wait for an answer"),
    ):
        with pytest.raises(ConfigError, match=words):
            check(trace)


@pytest.mark.parametrize("of_a_trace", [True, False])
def test_a_limit_of_concurrency_goes_with_rows_that_follow_none(of_a_trace: bool) -> None:
    (problem,) = Client(max_concurrency=1).misfits_of_sessions(of_a_trace)
    assert ("workload.follow_turns=false" in problem.message) is of_a_trace


def test_keys_that_nothing_is_made_of_are_told(path: Path) -> None:
    path.write_text(lines(*ROWS, {"timestamp": 1, "input_length": 1, "output_length": 1, "tool_wait_ms": 3}))
    said = Trace(str(path)).notes.lines()
    assert "not read: tool_wait_ms" in said
    assert "4 sessions: later turns wait for answers (workload.follow_turns)" in said


def test_answers_are_awaited_under_any_load(path: Path) -> None:
    """One place for all: a turn never comes before the answer to the last."""
    tight = replace(CLOCKWORK, scheduler=Continuous(max_num_seqs=1, block_size=4))
    ended = turns(replayed(Trace(str(path), at_once=True), tight), "sent_s", "finished_s")
    assert all(ended[place][0] >= ended[place[0], place[1] - 1][1] for place in ended if place[1])
