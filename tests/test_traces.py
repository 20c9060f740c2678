"""`servesim trace`: what a trace is like, the same in another format, and a run's requests as a trace."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from servesim import load, run
from servesim.cli import main
from servesim.results.result import Result
from servesim.scenario import Scenario
from servesim.workload.description import Description
from servesim.workload.formats import read
from servesim.workload.trace import Trace
from tests.browser import Open
from tests.report.run.runs import SMALL
from tests.shared import shared_data
from tests.workload.formats.samples import SAMPLES, lines, write


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Four requests, one every 10 s, of 100 to 400 tokens in and 1 to 4 out."""
    rows = "".join(f"{10 * row},{100 * (row + 1)},{row + 1}\n" for row in range(4))
    (tmp_path / "trace.csv").write_text(f"sent_s,input_tokens,output_tokens\n{rows}")
    return tmp_path / "trace.csv"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run(load(*SMALL)).save(tmp_path / "run")
    return tmp_path / "run"


def told(capsys: pytest.CaptureFixture[str]) -> str:
    """Return what was printed, in one line."""
    return " ".join(capsys.readouterr().out.split())


def test_a_trace_is_described(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", str(trace)]) == 0
    said = told(capsys)
    assert said.startswith("trace.csv: a trace of 4 requests")
    assert "4, with 250 tokens in and 2.5 out on average, 1,000 and 10 in all" in said
    assert "30 s at 0.1/s, at most 0.1/s over 30 s; squared coefficient of variation of the gaps 0 " in said
    assert "tokens in 250 100" in said
    assert "Notes read as native: sent_s (s), input_tokens, output_tokens" in said
    assert "Prefixes" not in said


@pytest.mark.parametrize("columns", [24, 40, 80, 100, 200])
def test_no_number_is_cut(
    columns: int, trace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    rows = "".join(f"{row},999999999,{987654321 + row}\n" for row in range(3))
    trace.write_text(f"sent_s,input_tokens,output_tokens\n{rows}")
    assert main(["trace", str(trace)]) == 0
    printed = capsys.readouterr().out
    assert "…" not in printed
    assert max(map(len, printed.splitlines())) <= columns
    if columns >= 80:
        assert printed.count("999,999,999") >= 10
        assert "987,654,321" in printed


def test_two_requests_have_no_variation_of_gaps(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace.write_text("sent_s,input_tokens,output_tokens\n0,1,1\n4,1,1\n")
    assert main(["trace", str(trace)]) == 0
    said = told(capsys)
    assert "4 s at 0.25/s, at most 0.25/s over 4 s" in said
    assert "variation of the gaps - (Poisson: 1)" in said


@pytest.mark.parametrize("name", SAMPLES)
def test_every_format_is_described_and_drawn(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(SAMPLES[name], tmp_path / "file")
    assert main(["trace", str(path), "--out", str(tmp_path / "page.html")]) == 0
    said = told(capsys)
    assert f"read as {SAMPLES[name].format}" in said
    assert ("Prefixes" in said) == (SAMPLES[name].ids is not None or name == "mooncake_with_sessions")
    assert ("no times in the file" in said) == (SAMPLES[name].times_s is None)
    for column in SAMPLES[name].unread:
        assert column in said
    assert "<h1>file</h1>" in (tmp_path / "page.html").read_text()


def test_a_window_is_described(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", str(trace), "--start", "10", "--end", "30"]) == 0
    assert "a trace of 2 requests" in told(capsys)


def test_a_trace_becomes_another_format(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = trace.with_name("mine.jsonl")
    assert main(["trace", str(trace), "--to", "mooncake", "--out", str(out)]) == 0
    said = told(capsys)
    assert said.startswith(f"{out}: 4 requests as mooncake read as native")
    assert "blocks of 512 tokens are made up, and no two prompts share any" in said
    assert json.loads(out.read_text().splitlines()[3]) == {
        "timestamp": 30_000,
        "input_length": 400,
        "output_length": 4,
        "hash_ids": [3],
    }


def test_what_is_lost_on_the_way_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(SAMPLES["burstgpt_6"], tmp_path / "file")
    assert main(["trace", str(path), "--to", "vidur", "--out", str(tmp_path / "v.csv")]) == 0
    said = told(capsys)
    assert "left out, failed requests (0 response tokens): 1" in said
    assert "not carried over: Model, Total tokens and Log Type" in said
    assert "times count from the first request, which was recorded at 5 s" in said


def test_the_requests_of_a_run_become_a_trace(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "mine.jsonl"
    assert main(["trace", str(folder), "--to", "mooncake", "--out", str(out)]) == 0
    recording = read(out)
    sent = run(load(*SMALL)).requests.sort_values("request_id")
    assert recording.input_tokens.tolist() == sent.input_tokens.tolist()
    assert recording.output_tokens.tolist() == sent.output_tokens.tolist()
    assert recording.time_ns / 1e9 == pytest.approx(sent.sent_s - sent.sent_s.min(), abs=1e-3)
    assert recording.blocks is not None
    assert len(set(recording.blocks.ids.tolist())) == len(recording.blocks.ids)


def test_the_sessions_of_a_run_keep_what_their_turns_share(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A prompt begins with all whole blocks of the one before; a session's first, with system prompts."""
    talks = (
        "workload=sessions",
        "workload.sessions=12",
        "workload.system_prompts=1",
        "workload.requests=null",
    )
    result = run(load(*SMALL, *talks))
    result.save(tmp_path / "run")
    for to, size in (("native", 16), ("mooncake", 512)):
        out = tmp_path / f"{to}.jsonl"
        assert main(["trace", str(tmp_path / "run"), "--to", to, "--out", str(out)]) == 0
        assert "sessions: each turn at the time it was sent in this run" in told(capsys)
        blocks = read(out).blocks
        assert blocks is not None
        assert blocks.tokens == size
        seen: dict[int, int] = {}
        sent = result.requests.sort_values("request_id")
        for row, (session, tokens) in enumerate(zip(sent.session, sent.input_tokens, strict=True)):
            before = seen.setdefault(session, row)
            shared = sent.input_tokens.iloc[before] if before < row else 500 * (row > 0)
            other, own = (blocks.ids[blocks.starts[at] : blocks.starts[at + 1]] for at in (before, row))
            other = blocks.ids[: blocks.starts[1]] if before == row else other
            assert len(own) == -(-tokens // size)
            assert (own[: shared // size] == other[: shared // size]).all()
            assert not np.isin(own[shared // size :], other).any() or row == 0
            seen[session] = row
    main(
        [
            "trace",
            str(tmp_path / "run" / "requests.parquet"),
            "--to",
            "native",
            "--out",
            str(tmp_path / "t.csv"),
        ]
    )
    assert "sessions, and so what prompts share, are not read" in told(capsys)


#: Sessions of three turns, two seconds apart, of which the prompts are whole or bring what is new; each with
#: and without blocks, and the same without sessions.
TURNS = {
    f"{'whole' if whole else 'new'}{' with blocks' if blocks else ''}": [
        {
            "session_id": session,
            **({"timestamp": 1000 * session} if turn == 0 else {"delay": 2000.5}),
            **({"timestamp": 1000 * session + 9000} if turn == 2 else {}),
            "input_length": 1100 + (600 * turn if whole else 0),
            "output_length": 40,
            **(
                {"hash_ids": [0, *(100 * session + 9 * turn * (not whole) + n for n in (1, 2, 3, 4))]}
                if blocks
                else {}
            ),
        }
        for session in range(1, 5)
        for turn in range(3)
    ]
    for whole, blocks in ((True, True), (False, False), (False, True))
}
TURNS["new with blocks"] = [
    row if "delay" not in row else row | {"hash_ids": [number + 1000 * n for n in (1, 2, 3)]}
    for number, row in enumerate(TURNS["new with blocks"], 700)
]
TURNS["apart"] = [
    {name: value for name, value in row.items() if name not in ("session_id", "delay")}
    | {"timestamp": 900 * number}
    for number, row in enumerate(TURNS["whole with blocks"])
]


@cache
def small() -> Scenario:
    return load(*SMALL)


def replayed(path: Path, **settings: Any) -> Result:
    return run(replace(small(), workload=Trace(str(path), **settings)))


@pytest.mark.parametrize("kind", TURNS)
def test_a_replayed_trace_becomes_one_that_finds_as_much_in_the_cache(kind: str, tmp_path: Path) -> None:
    """Request by request, on a cache that loses nothing, at a rate and lengths of its own."""
    (tmp_path / "trace.jsonl").write_text(lines(*TURNS[kind]))
    before = replayed(tmp_path / "trace.jsonl", rate_scale=0.5, requests=10)
    before.save(tmp_path / "run")
    for back in ("one.jsonl", "two.jsonl"):
        assert main(["trace", str(tmp_path / "run"), "--to", "mooncake", "--out", str(tmp_path / back)]) == 0
        after = replayed(tmp_path / back)
        after.save(tmp_path / "run")
        names = ["session", "turn", "input_tokens", "output_tokens", "cached_tokens"]
        told = [each.requests.sort_values("request_id")[names] for each in (before, after)]
        assert told[0].reset_index(drop=True).equals(told[1].reset_index(drop=True))
        assert told[0].cached_tokens.sum() > 5000
        ends = [each.requests.sort_values("request_id").ended_s.to_numpy() for each in (before, after)]
        assert ends[1] == pytest.approx(ends[0], abs=2e-3)  # times are whole milliseconds


@pytest.mark.parametrize("kind", ["whole with blocks", "new"])
def test_turns_of_a_replayed_trace_share_where_there_is_no_room_for_sessions(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "trace.jsonl").write_text(lines(*TURNS[kind]))
    result = replayed(tmp_path / "trace.jsonl")
    result.save(tmp_path / "run")
    out = tmp_path / "t.jsonl"
    assert main(["trace", str(tmp_path / "run"), "--to", "vllm_timed", "--out", str(out)]) == 0
    assert "sessions: each turn at the time it was sent in this run" in told(capsys)
    found = read(out)
    assert found.input_tokens.tolist() == result.requests.sort_values("request_id").input_tokens.tolist()
    reuse = Description(found).reuse
    assert reuse is not None
    first, second, third = {"whole with blocks": (512, 1104, 1712), "new": (0, 1088, 2240)}[kind]
    assert int(reuse.tokens.sum()) == 3 * first + 4 * (second + third)  # of 4 sessions, in blocks of 16


@pytest.mark.parametrize(("now", "words"), [(None, "cannot be read"), ([TURNS["new"][0]], "has changed")])
def test_a_trace_that_is_gone_or_another_is_told(
    now: list[dict[str, object]] | None,
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text(lines(*TURNS["apart"]))
    replayed(path).save(tmp_path / "run")
    path.write_text(lines(*now)) if now else path.unlink()
    arguments = ["trace", str(tmp_path / "run"), "--to", "mooncake", "--out", str(tmp_path / "t.jsonl")]
    assert main(arguments) == 0
    assert f"sessions, and what prompts share, are not kept: {path} {words}" in told(capsys)


def test_sessions_are_in_a_window_as_a_whole_and_keep_their_turns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "trace.jsonl", tmp_path / "mine.jsonl"
    path.write_text(lines(*TURNS["new"]))
    cut = ["trace", str(path), "--start", "1", "--end", "3"]
    assert main([*cut, "--to", "mooncake", "--out", str(out)]) == 0
    kept = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row.get("timestamp") for row in kept] == [0, None, 9000, 1000, None, 10_000]
    assert [row.get("delay") for row in kept] == [None, 2000.5, 2000.5] * 2
    assert all("hash_ids" not in row for row in kept)
    assert "not carried over" not in told(capsys)
    assert main([*cut, "--to", "vllm_timed", "--out", str(out)]) == 0
    assert "written with all that was said before, 6,840 tokens more" in told(capsys)
    assert read(out).input_tokens.tolist() == [1100, 1100, 2240, 2240, 3380, 3380]


def test_sessions_are_described_as_such(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [row for row in TURNS["new"] if row.get("timestamp", 0) < 9000]
    (tmp_path / "trace.jsonl").write_text(lines(*rows))
    assert main(["trace", str(tmp_path / "trace.jsonl"), "--out", str(tmp_path / "page.html")]) == 0
    said = told(capsys)
    assert "Sessions 4 of 2 turns on average (2 to 2); a later one is sent 2 s on average after" in said
    assert "3 s at 1 sessions/s" in said
    assert "later turns come when answers do" in said
    assert "1,670 tokens in (1,100 of them new) and 40 out on average" in said
    assert "new of them 1,100" in said
    assert "34.1% of the prompts' tokens were said before in their session" in said
    assert "out of order" not in said
    page = (tmp_path / "page.html").read_text()
    assert "Sessions: 4 of 2 turns" in page
    assert "Gaps between sessions" in page
    assert "Tokens in over time" not in page


def test_requests_past_the_horizon_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(load(*SMALL, "horizon_s=2")).save(tmp_path / "run")
    arguments = ["trace", str(tmp_path / "run"), "--to", "native", "--out", str(tmp_path / "t.parquet")]
    assert main(arguments) == 0
    assert "past the horizon, so never sent, and left out: " in told(capsys)


def test_a_timed_trace_is_read_as_it_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t").write_text('{"at": 2, "in": 5, "out": 1}\n{"at": 4, "in": 5, "out": 1}\n')
    labels = {"label-timestamp": "at", "label-input-length": "in", "label-output-length": "out"}
    flags = [f"--timed-trace-{name}={value}" for name, value in (labels | {"sec-multiplier": "60"}).items()]
    assert main(["trace", str(tmp_path / "t"), *flags]) == 0
    assert "120 s at" not in (said := told(capsys))
    assert "2 min at" in said
    assert "read as vllm_timed: at (units of 60 s), in, out" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "FILE: is missing: a trace, or the folder"),
        ([""], "FILE: is missing: a trace, or the folder"),
        (["/dev/zero"], "FILE = '/dev/zero': is no regular file"),
        (["nowhere"], "FILE = 'nowhere': no such file"),
        (["{trace}", "{trace}"], "see servesim trace --help"),
        (["{trace}", "--to", "mooncake"], "--out: is missing: the file to be written as mooncake"),
        (["{trace}", "--to", "sharegpt", "--out", "x"], "--to = 'sharegpt': must be azure, mooncake,"),
        (["{trace}", "--format", "csv"], "--format = 'csv': must be auto, azure,"),
        (["{trace}", "--format", "azure"], "must name the columns TIMESTAMP, ContextTokens and"),
        (
            ["{trace}", "--start", "31"],
            "--start = 31.0: no request is in the window up to --end",
        ),
        (["{trace}", "--start", "nan"], "--start = nan: must be a number"),
        (["{trace}", "--characters-per-token", "0"], "--characters-per-token = 0.0: must be at least 0.1"),
        (
            ["{trace}", "--timed-trace-chunk-hash-size", "0"],
            "--timed-trace-chunk-hash-size = 0: must be at least 1",
        ),
        (
            ["{trace}", "--tokenizer", "t.json"],
            "--tokenizer = 't.json': is for traces in the format sharegpt",
        ),
        (
            ["{trace}", "--timed-trace-chunk-hash-size", "9"],
            "--timed-trace: is for traces in the format vllm",
        ),
        (["{trace}", "--to", "native", "--out", "x.txt"], "--out = 'x.txt': must end in .csv"),
    ],
)
def test_bad_input_is_refused(
    arguments: list[str], words: str, trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", *(word.format(trace=trace) for word in arguments)]) == 1
    assert words in capsys.readouterr().err


def test_a_file_without_times_has_no_window(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace.write_text("input_tokens,output_tokens\n20,3\n5,1\n")
    assert main(["trace", str(trace), "--start", "0", "--end", "1"]) == 1
    said = capsys.readouterr().err
    assert "--start = 0.0: chooses requests by their times, and the file has none" in said
    assert "--end = 1.0: chooses requests" in said


@pytest.mark.parametrize(
    "option",
    ["--format=azure", "--characters-per-token=5", "--tokenizer=t.json", "--timed-trace-sec-multiplier=2"],
)
@pytest.mark.parametrize("more", [[], ["--to", "native", "--out", "t.csv"]])
def test_how_a_file_is_read_is_no_option_of_a_run(
    option: str, more: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", str(folder), option, *more]) == 1
    said = capsys.readouterr().err
    assert option.partition("=")[0] in said
    assert "is for the file of a trace, not for the folder of a run" in said


def test_bad_rows_are_told_with_their_lines(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace.write_text(trace.read_text() + "40,0,1\n")
    assert main(["trace", str(trace)]) == 1
    said = capsys.readouterr().err
    assert f"{trace}, line 6, input_tokens = '0': must be a whole number from 1" in said


def test_a_page_must_be_called_one_and_its_folder_is_made(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", str(trace), "--out", str(trace.with_name("c.png"))]) == 1
    assert "must end in .html or .htm: what is written is a page" in capsys.readouterr().err
    assert not trace.with_name("c.png").exists()
    for name in ("new/folder/c.html", "d.HTM"):
        assert main(["trace", str(trace), "--out", str(trace.parent / name)]) == 0
        assert (trace.parent / name).exists()


def test_a_timeline_must_be_called_one(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", str(folder), "--out", str(folder / "t.html")]) == 1
    assert "must end in .json: what is written is a timeline" in capsys.readouterr().err


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_a_browser_draws_a_trace(mode: str, tmp_path: Path, open_page: Open) -> None:
    path = shared_data("traces", "mooncake_synthetic.jsonl.gz")
    assert main(["trace", str(path), "--out", str(tmp_path / "page.html")]) == 0
    opened = open_page(tmp_path / "page.html", mode)
    opened.check()
    [rate] = opened.named("requests/s")
    gaps = sum(np.diff(rate["x"]) * 60 * rate["y"][:-1])  # minutes; the last level is drawn twice
    assert gaps == pytest.approx(3_993 - 1)


@pytest.mark.parametrize("name", ["azure_2023", "sharegpt", "native_csv", "mooncake_without_blocks"])
def test_a_browser_draws_small_traces(name: str, tmp_path: Path, open_page: Open) -> None:
    path = write(SAMPLES[name], tmp_path / "file")
    assert main(["trace", str(path), "--out", str(tmp_path / "page.html")]) == 0
    open_page(tmp_path / "page.html").check()
