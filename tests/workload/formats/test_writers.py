"""Written and read again, every request is there; what a format cannot hold is told."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servesim.check import ConfigError
from servesim.workload.description import Description
from servesim.workload.formats import Recording, read
from servesim.workload.formats.fitting import Room, fitted
from servesim.workload.formats.options import TimedTrace
from servesim.workload.formats.resized import merged, split, unshared
from servesim.workload.formats.writers import WRITERS, write
from tests.shared import shared_data
from tests.workload.formats.recordings import blocks_of, listed, recordings
from tests.workload.formats.samples import SAMPLES
from tests.workload.formats.samples import write as write_sample

KINDS = [(format, "trace") for format in WRITERS if format != "native"]
KINDS += [("native", "trace.csv"), ("native", "trace.jsonl"), ("native", "trace.parquet")]
WITHOUT_BLOCKS = ["azure", "burstgpt", "vidur", "splitwise", "llmservingsim"]
PLAIN = ("time_ns", "input_tokens", "output_tokens")


def through(recording: Recording, format: str, name: str = "trace") -> tuple[Recording, list[str]]:
    """Return what is read of a written recording, and what the writing changed."""
    with TemporaryDirectory() as folder:
        path = Path(folder, name)
        changes = write(recording, format, path)
        return read(path, format), changes


def columns(recording: Recording) -> list[list[int]]:
    return [getattr(recording, name).tolist() for name in PLAIN]


@pytest.mark.parametrize(("format", "name"), KINDS)
@settings(max_examples=20)
@given(data=st.data())
def test_every_request_survives_a_format(format: str, name: str, data: st.DataObject) -> None:
    """Of times that the format can hold; what cannot count from 0 counts from the first request."""
    made = data.draw(recordings(least_output=WRITERS[format].room.least_output)).by_time()
    shift = 0 if WRITERS[format].room.dates else made.time_ns[0]
    found, _ = through(made, format, name)
    assert columns(found) == columns(made._replace(time_ns=made.time_ns - shift))


@pytest.mark.parametrize(("format", "name"), KINDS)
@given(made=recordings(), few=st.booleans())
@settings(max_examples=5)
def test_what_is_written_is_known_by_its_content(format: str, name: str, made: Recording, few: bool) -> None:
    """Also where a prompt is one block in Mooncake's traces and in vLLM's alike."""
    if few:
        made = made._replace(input_tokens=np.minimum(made.input_tokens, 16))
    with TemporaryDirectory() as folder:
        write(made, format, Path(folder, name))
        assert read(Path(folder, name)).format == format


@given(recordings(step_ns=1, least_output=1))
@settings(max_examples=20)
def test_a_request_keeps_its_lengths_and_its_place_through_all_formats(made: Recording) -> None:
    found = made
    for format in WRITERS:
        found, _ = through(found, format, "trace.csv")
    sorted_by_time = made.by_time()
    elapsed_ns = sorted_by_time.time_ns - sorted_by_time.time_ns[0]
    assert found.input_tokens.tolist() == sorted_by_time.input_tokens.tolist()
    assert found.output_tokens.tolist() == sorted_by_time.output_tokens.tolist()
    assert np.abs(found.time_ns - elapsed_ns).max() <= 1_000_001  # rounded to milliseconds on the way


@pytest.mark.parametrize(
    ("format", "name"), [("mooncake", "t"), ("vllm_timed", "t"), ("native", "t.csv"), ("native", "t.parquet")]
)
@given(data=st.data())
@settings(max_examples=10)
def test_blocks_survive_where_they_have_room(format: str, name: str, data: st.DataObject) -> None:
    made = data.draw(recordings()).by_time()
    if format == "vllm_timed":
        made = made._replace(blocks=unshared(made.input_tokens, 16))
    found, changes = through(made, format, name)
    assert made.blocks is not None
    assert found.blocks is not None
    assert listed(found.blocks) == listed(made.blocks)
    assert found.blocks.tokens == made.blocks.tokens
    assert not any("blocks" in change for change in changes)


@pytest.mark.parametrize("format", WITHOUT_BLOCKS)
def test_blocks_that_are_not_kept_are_told(format: str, tmp_path: Path) -> None:
    recording = read(write_sample(SAMPLES["mooncake"], tmp_path / "t"))
    found, changes = through(recording, format)
    assert found.blocks is None
    assert "blocks of the prompts, and so what they share: 201 not kept" in changes


def test_made_up_blocks_are_unique_of_512_tokens_the_last_one_partial(tmp_path: Path) -> None:
    recording = read(write_sample(SAMPLES["azure_2023"], tmp_path / "t"))
    recording = recording._replace(input_tokens=np.array([512, 1025]))
    found, changes = through(recording, "mooncake")
    assert found.blocks is not None
    assert listed(found.blocks) == [[0], [1, 2, 3]]
    assert "blocks of 512 tokens are made up, and no two prompts share any" in changes


def test_small_blocks_become_large_ones_that_share_what_whole_ones_share() -> None:
    blocks = merged(blocks_of([[1, 2, 3, 4, 5], [1, 2, 3, 9], [7, 2, 3, 4], [1, 2]], 16), 32)
    first, second, third, fourth = listed(blocks)
    assert blocks.tokens == 32
    assert list(map(len, (first, second, third, fourth))) == [3, 2, 2, 1]
    assert first[0] == second[0] == fourth[0]
    assert len({first[1], second[1], third[1]}) == 3
    assert first[0] != third[0]


@given(recordings(block_tokens=16))
def test_merging_shares_nothing_that_was_not_shared(made: Recording) -> None:
    assert made.blocks is not None
    before, after = listed(made.blocks), listed(merged(made.blocks, 512))
    for one, small in zip(after, before, strict=True):
        assert len(one) == -(-len(small) // 32)
        for other, other_small in zip(after, before, strict=True):
            for place, (a, b) in enumerate(zip(one, other, strict=False)):
                stop = 32 * (place + 1)
                assert (a == b) == (small[:stop] == other_small[:stop])


@given(recordings(), st.sampled_from([16, 64, 256, 512]))
def test_splitting_shares_the_tokens_that_were_shared(made: Recording, tokens: int) -> None:
    """Prompts begin alike for as many tokens as before, up to where the shorter ends."""
    assert made.blocks is not None
    parts = split(made.blocks, tokens, made.input_tokens)
    before, after = listed(made.blocks), listed(parts)
    lengths = made.input_tokens.tolist()
    for one, small, length in zip(before, after, lengths, strict=True):
        assert len(small) == -(-length // tokens)
        for other, other_small, other_length in zip(before, after, lengths, strict=True):
            most = min(length, other_length)
            assert min(alike(small, other_small) * tokens, most) == min(alike(one, other) * 512, most)


def alike(one: list[int], other: list[int]) -> int:
    """Return by how many equal ids two prompts begin."""
    pairs = zip(one, other, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


@given(recordings())
@settings(max_examples=20)
def test_mooncakes_trace_is_the_same_traffic_as_a_timed_trace(made: Recording) -> None:
    """The format found out by itself: times, lengths and what an endless cache finds."""
    assert made.blocks is not None
    ids = [[100 * place + one for place, one in enumerate(each)] for each in listed(made.blocks)]
    for each, length in zip(ids, made.input_tokens.tolist(), strict=True):
        each[-1] += 10_000 * (length % 512)  # blocks that are full to another token are not the same
    with TemporaryDirectory() as folder:
        first, second = Path(folder, "first"), Path(folder, "second")
        write(made._replace(blocks=blocks_of(ids, 512)), "mooncake", first)
        changes = write(read(first), "vllm_timed", second)
        one, other = read(first), read(second)
    assert other.format == "vllm_timed"
    assert columns(other) == columns(one)
    assert any("split into those of 16: the same tokens are shared" in change for change in changes)
    shared, still = Description(one).reuse, Description(other).reuse
    assert shared is not None
    assert still is not None
    assert still.tokens.tolist() == shared.tokens.tolist()


def test_a_timed_trace_of_odd_blocks_is_told_how_to_be_read(tmp_path: Path) -> None:
    recording = recording_of(blocks_of([[7]], 24))
    [change] = write(recording, "vllm_timed", tmp_path / "t")
    assert "--timed-trace-chunk-hash-size 24 (workload.timed_trace.chunk_hash_size=24)" in change
    found = read(tmp_path / "t", timed_trace=TimedTrace(chunk_hash_size=24)).blocks
    assert found is not None
    assert (listed(found), found.tokens) == ([[7]], 24)


def test_blocks_that_do_not_fill_the_formats_are_refused() -> None:
    recording = through(recording_of(blocks_of([[1]], 48)), "native", "t.csv")[0]
    with pytest.raises(ConfigError, match="has blocks of 512 tokens, and those of the trace, of 48, do not"):
        fitted(recording, WRITERS["mooncake"].room)


def recording_of(blocks: object = None, **changes: object) -> Recording:
    one = np.array([1], dtype=np.int64)
    return Recording(one * 0, one * 5, one, "made", blocks=blocks)._replace(**changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "room", "told"),
    [
        ({"time_ns": np.array([5_000_000_000])}, Room(), "which was recorded at 5 s"),
        ({"time_ns": np.array([150])}, Room(dates=True, step_ns=100), "to multiples of 0.0000001 s: 1"),
        ({"timed": False}, Room(), "there are no times, so every request is at 0"),
        ({"output_tokens": np.array([0])}, Room(least_output=1), "failed, written as 1: 1"),
        ({"left_out": (("failed requests", 7),)}, Room(), "left out, failed requests: 7"),
        ({"unread": ("Model", "Log Type")}, Room(), "not carried over: Model and Log Type"),
    ],
)
def test_every_change_is_told(changes: dict[str, object], room: Room, told: str) -> None:
    assert any(told in change for change in fitted(recording_of(**changes), room)[1])


def test_what_fits_is_not_changed() -> None:
    assert fitted(recording_of(), Room())[1] == []
    assert fitted(recording_of(timed=False), Room(no_times=True))[1] == []


def test_rows_out_of_order_are_sorted() -> None:
    two = recording_of(
        time_ns=np.array([2, 0]), input_tokens=np.array([7, 8]), output_tokens=np.array([1, 1])
    )
    found, changes = fitted(two, Room())
    assert found.input_tokens.tolist() == [8, 7]
    assert changes == ["rows out of order, sorted by time: 1"]


@pytest.mark.parametrize("name", ["trace.csv.gz", "trace.jsonl.gz"])
def test_packed_files_have_the_same_bytes_whenever_they_are_written(name: str, tmp_path: Path) -> None:
    recording = read(write_sample(SAMPLES["vllm_timed"], tmp_path / "t"))
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write(recording, "native", tmp_path / folder / name)
    assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert b"input_tokens" in gzip.decompress((tmp_path / "a" / name).read_bytes())
    assert columns(read(tmp_path / "a" / name))[1:] == columns(recording)[1:]


@pytest.mark.parametrize("name", ["trace", "trace.txt", "trace.gz", "trace.parquet.gz"])
def test_the_kind_of_a_native_file_must_be_told(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"must end in \.csv, \.jsonl or \.parquet"):
        write(recording_of(), "native", tmp_path / name)


def test_formats_of_texts_and_of_results_are_not_written(tmp_path: Path) -> None:
    for format in ("sharegpt", "vllm_bench"):
        with pytest.raises(ConfigError, match=re.escape("must be azure, mooncake,")):
            write(recording_of(), format, tmp_path / "t")


def test_dates_of_azure_survive_to_their_100_nanoseconds() -> None:
    recording = read(shared_data("traces", "AzureLLMInferenceTrace_code.csv"))
    found, changes = through(recording, "azure")
    assert columns(found) == columns(recording)
    assert changes == []


def test_mooncakes_trace_is_written_as_it_is(tmp_path: Path) -> None:
    path = shared_data("traces", "mooncake_synthetic.jsonl.gz")
    assert write(read(path), "mooncake", tmp_path / "t") == []
    assert (tmp_path / "t").read_bytes() == gzip.decompress(path.read_bytes())
