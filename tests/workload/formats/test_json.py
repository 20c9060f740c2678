"""JSON traces: every object is read, or refused with its place."""

from __future__ import annotations

import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim.check import ConfigError
from servesim.workload.formats import read
from servesim.workload.formats.json_array import items
from servesim.workload.formats.options import TimedTrace
from tests.workload.formats.samples import SAMPLES, conversation, lines

GOOD = {"timestamp": 0, "input_length": 700, "output_length": 3, "hash_ids": [0, 1]}


def refusals(path: Path, text: str, format: str = "auto") -> list[str]:
    path.write_text(text)
    with pytest.raises(ConfigError) as refused:
        read(path, format)
    return [str(problem) for problem in refused.value.problems]


TOKENS = "to 1,000,000,000 (tokens)"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"timestamp": -1}, "line 2, timestamp = -1: must be a number from 0 to 9e+12 (ms)"),
        ({"timestamp": "0"}, "line 2, timestamp = '0': must be a number from 0 to 9e+12 (ms)"),
        ({"timestamp": None}, "line 2, timestamp: must be a number from 0 to 9e+12 (ms)"),
        ({"timestamp": float("nan")}, "line 2, timestamp = nan: must be a number from 0 to 9e+12 (ms)"),
        ({"input_length": 0}, f"line 2, input_length = 0: must be a whole number from 1 {TOKENS}"),
        ({"input_length": True}, f"line 2, input_length = True: must be a whole number from 1 {TOKENS}"),
        ({"input_length": 10**400}, "line 2, input_length = 1000"),
        ({"output_length": 1.5}, f"line 2, output_length = 1.5: must be a whole number from 0 {TOKENS}"),
        ({"hash_ids": None}, "line 2, hash_ids: must be a list of whole numbers from 0 to 2^64 - 1"),
        ({"hash_ids": [-1]}, "line 2, hash_ids = [-1]: must be a list of whole numbers from 0 to 2^64 - 1"),
        ({"hash_ids": [2**64]}, "line 2, hash_ids = [18446744073709551616]: must be a list of whole"),
        ({"hash_ids": ["a"]}, "line 2, hash_ids = ['a']: must be a list of whole numbers"),
    ],
)
def test_a_bad_value_is_refused_with_its_line(
    change: dict[str, object], problem: str, tmp_path: Path
) -> None:
    [found] = refusals(tmp_path / "t", lines(GOOD, GOOD | change, GOOD))
    assert found.startswith(f"path, {problem}")


def test_lines_that_are_no_objects_are_refused(tmp_path: Path) -> None:
    text = lines(GOOD) + "[1]\n{\n\n" + lines(GOOD)
    assert refusals(tmp_path / "t", text) == [
        "path, line 2 = [1]: must be a JSON object",
        "path, line 3: must be a JSON object",
    ]


@pytest.mark.parametrize("format", ["auto", "mooncake"])
def test_two_objects_in_a_line_are_told_as_such(format: str, tmp_path: Path) -> None:
    text = 2 * f"{json.dumps(GOOD)} {json.dumps(GOOD)}\n"
    assert refusals(tmp_path / "t", text, format) == [
        f"path, line {line}: must be a JSON object and nothing behind it: each object needs a line of its own"
        for line in (1, 2)
    ]


def test_a_list_of_records_is_read_as_the_lines_are(tmp_path: Path) -> None:
    for name, sample in SAMPLES.items():
        if sample.text.startswith("{") and sample.format != "vllm_bench":
            records = [json.loads(line) for line in sample.text.splitlines() if line]
            (tmp_path / "list").write_text("\n" + json.dumps(records, indent=1))
            (tmp_path / "lines").write_text(sample.text)
            found, wanted = read(tmp_path / "list"), read(tmp_path / "lines")
            assert found.format == sample.format, name
            assert found.time_ns.tolist() == wanted.time_ns.tolist()
            assert found.output_tokens.tolist() == sample.outputs
            assert found.remarks == wanted.remarks


def test_bad_records_of_a_list_are_refused_with_their_places(tmp_path: Path) -> None:
    text = json.dumps([GOOD, GOOD | {"input_length": 0}, 3])
    assert [each.partition(" = ")[0] for each in refusals(tmp_path / "t", text)] == [
        "path, record 2, input_length",
        "path, record 3",
    ]
    [cut] = refusals(tmp_path / "t", text[:-1])
    assert cut.endswith("must be a JSON list of objects, but ends before its list does")
    [unknown] = refusals(tmp_path / "t", '[{"prompt": "x"}]')
    assert "has none of the known layouts" in unknown


@pytest.mark.parametrize(
    ("change", "format", "unit"),
    [({"timestamp": 12}, "mooncake", "ms"), ({"timestamp": 12.0}, "vllm_timed", "seconds")],
)
def test_a_unit_of_time_that_nothing_but_the_times_says_is_doubted(
    change: dict[str, object], format: str, unit: str, tmp_path: Path
) -> None:
    """A prompt of 16 tokens or fewer is one block of either size."""
    for more in ({}, {"hash_ids": [7]}):
        record = {"input_length": 9, "output_length": 1} | change | more
        (tmp_path / "t").write_text(lines(record))
        recording = read(tmp_path / "t")
        assert recording.format == format
        assert f"times taken for {unit} by their" in recording.remarks[1]
        assert len(read(tmp_path / "t", format).remarks) == 0
    (tmp_path / "t").write_text(lines(record | {"input_length": 17, "hash_ids": [7, 8]}))
    assert read(tmp_path / "t").format == "vllm_timed"
    assert not any("taken for" in remark for remark in read(tmp_path / "t").remarks)


def test_deep_nesting_is_refused(tmp_path: Path) -> None:
    [found] = refusals(tmp_path / "t", lines(GOOD) + "[" * 100_000 + "\n")
    assert found == "path, line 2: must be a JSON object"


def test_a_key_that_only_some_objects_have_is_missed(tmp_path: Path) -> None:
    without = {key: value for key, value in GOOD.items() if key != "hash_ids"}
    [found] = refusals(tmp_path / "t", lines(GOOD, without))
    assert found.startswith("path, line 2, hash_ids: must be a list")


def test_bad_values_are_listed_up_to_20_and_the_rest_counted(tmp_path: Path) -> None:
    bad = GOOD | {"input_length": 0, "output_length": -1}
    problems = refusals(tmp_path / "t", lines(GOOD, *[bad] * 9000))
    assert len(problems) == 21
    assert problems[20].endswith("17,980 more values are wrong")


@given(st.lists(st.sampled_from(["good", "zero", "text", "number", ""]), min_size=1, max_size=30))
def test_every_line_is_read_or_refused(kinds: list[str]) -> None:
    texts = {
        "good": json.dumps(GOOD),
        "zero": json.dumps(GOOD | {"input_length": 0}),
        "text": "x",
        "number": "3",
        "": "",
    }
    bad = [line for line, kind in enumerate(kinds, start=1) if kind not in ("good", "")]
    with TemporaryDirectory() as folder:
        path = Path(folder, "t")
        text = "".join(f"{texts[kind]}\n" for kind in kinds)
        if bad:
            found = refusals(path, text, "mooncake")
            assert [int(re.findall(r"line (\d+)", each)[0]) for each in found[:20]] == bad[:20]
        elif "good" in kinds:
            path.write_text(text)
            assert read(path, "mooncake").size == kinds.count("good")


def test_a_key_that_no_object_has_is_told_once(tmp_path: Path) -> None:
    agent = {"session": 1, "timestamp": 0}
    found = refusals(tmp_path / "t", lines(*[agent] * 9000), "mooncake")
    assert found == [
        f"path = '{tmp_path / 't'}': has no {key}, which must be a whole number from {least} {TOKENS}: "
        "9,000 times, line 1, line 2, line 3 and 8,997 more"
        for key, least in (("input_length", 1), ("output_length", 0))
    ]


def test_a_key_that_two_objects_lack_is_told_with_both_lines(tmp_path: Path) -> None:
    less = {key: value for key, value in GOOD.items() if key != "output_length"}
    [found] = refusals(tmp_path / "t", lines(GOOD, less, GOOD, less))
    assert found.endswith(": 2 times, line 2 and line 4")


def test_a_label_that_is_in_no_line_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "t").write_text(lines(GOOD, GOOD, GOOD))
    with pytest.raises(
        ConfigError, match=r"1 problem in .*\n.*has no when, which must be a number .*3 times"
    ):
        read(tmp_path / "t", timed_trace=TimedTrace(label_timestamp="when"))


def test_the_requests_of_many_agents_are_refused_once(tmp_path: Path) -> None:
    agent = {"session_id": "s", "sub_requests": [], "arrival_time_ns": 0}
    [found] = refusals(tmp_path / "t", lines(agent, agent))
    assert "has sub_requests, and agents are not modelled yet" in found
    assert found.endswith("2 times, line 1 and line 2")


def test_times_in_whole_units_are_exact(tmp_path: Path) -> None:
    (tmp_path / "t").write_text(lines(GOOD | {"timestamp": 8_999_999_999_999}))
    assert read(tmp_path / "t").time_ns.tolist() == [8_999_999_999_999_000_000]
    sample = {"input_toks": 1, "output_toks": 1, "arrival_time_ns": 8_999_999_999_999_999_999}
    (tmp_path / "t").write_text(lines(sample))
    assert read(tmp_path / "t").time_ns.tolist() == [8_999_999_999_999_999_999]


def test_the_keys_of_a_timed_trace_can_be_named(tmp_path: Path) -> None:
    record = {"at": 1500, "in": 40, "out": 3, "blocks": [5, 6]}
    (tmp_path / "t").write_text(lines(record))
    labels = TimedTrace(32, 1e-3, "at", "in", "out", "blocks")
    for format in ("auto", "vllm_timed"):
        recording = read(tmp_path / "t", format, timed_trace=labels)
        assert (recording.format, recording.time_ns.tolist()) == ("vllm_timed", [1_500_000_000])
        assert recording.blocks is not None
        assert (recording.blocks.ids.tolist(), recording.blocks.tokens) == ([5, 6], 32)


def test_mooncake_read_as_a_timed_trace_of_its_unit_and_blocks_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "t").write_text(SAMPLES["mooncake"].text)
    one, other = (
        read(tmp_path / "t"),
        read(tmp_path / "t", timed_trace=TimedTrace(chunk_hash_size=512, sec_multiplier=1e-3)),
    )
    assert one.time_ns.tolist() == other.time_ns.tolist()
    assert one.blocks is not None
    assert other.blocks is not None
    assert one.blocks.tokens == other.blocks.tokens


def test_blocks_that_do_not_fit_the_prompts_are_told(tmp_path: Path) -> None:
    (tmp_path / "t").write_text(lines(GOOD, GOOD | {"hash_ids": [1]}))
    assert read(tmp_path / "t", "mooncake").remarks == (
        "prompts that have more or fewer blocks of 512 tokens than they need: 1",
    )


def test_requests_of_agents_are_refused_by_name(tmp_path: Path) -> None:
    agent = {"session_id": "s", "sub_requests": [{"input_toks": 1, "output_toks": 1}], "arrival_time_ns": 0}
    problems = refusals(tmp_path / "t", lines(agent))
    assert problems[0].startswith("path, line 1, sub_requests: agents are not modelled yet")


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        ({"input_lens": [1]}, "must have lists of output_lens: they are written with --save-detailed"),
        ({"input_lens": [1], "output_lens": 3}, "must have lists of output_lens"),
        ({"input_lens": [1], "output_lens": [1, 2]}, "not 1 input_lens and 2 output_lens"),
        ({"input_lens": [0], "output_lens": [1]}, "path, request 1, input_lens = 0: must be a whole number"),
        ({"input_lens": [1], "output_lens": [1], "errors": ["no"]}, "1 failed requests left out"),
    ],
)
def test_a_result_without_its_requests_is_refused(
    result: dict[str, object], problem: str, tmp_path: Path
) -> None:
    [found] = refusals(tmp_path / "t", json.dumps(result), "vllm_bench")
    assert problem in found


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[1, {}]", "path, conversation 1: must have conversations"),
        ('[{"conversations": [{"from": "human"}]}]', "path, conversation 1: must have conversations"),
        ("[", "must be a JSON list of conversations, but is not JSON"),
        ("[]", "has no request in it"),
        ('[{"conversations": []} {}]', "must be a JSON list of conversations, but has '{' between items"),
        ('[{"conversations": []}] [', "must be a JSON list of conversations, but has '[' behind its list"),
        ("[] 1", "must be a JSON list of conversations, but has '1' behind its list"),
        ('[{"conversations": []}', "must be a JSON list of conversations, but ends before its list does"),
        (
            json.dumps([conversation("hi", "ho")]),
            "has no request in it: 1 conversations outside vLLM's filter",
        ),
    ],
)
def test_what_are_no_conversations_is_refused(text: str, problem: str, tmp_path: Path) -> None:
    assert problem in refusals(tmp_path / "t", text)[0]


@given(
    st.lists(st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=5)), st.integers(1, 9)
)
def test_a_list_in_pieces_is_the_list(values: list[object], size: int) -> None:
    text = json.dumps(values, indent=1)
    pieces = (text[start : start + size] for start in range(0, len(text), size))
    assert list(items(pieces)) == values
