"""Every format is known by what is in the file, and every request of it is read."""

from __future__ import annotations

import gzip
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from servesim.check import ConfigError
from servesim.workload.formats import Recording, csv_chunk, json_chunk, read, sharegpt
from servesim.workload.formats.recognition import FORMATS
from tests.shared import shared_data
from tests.workload.formats.samples import SAMPLES, write

EACH = pytest.mark.parametrize("name", SAMPLES)


def same(one: Recording, other: Recording) -> bool:
    """Tell whether two recordings hold the same requests."""
    waits = zip(one.dialogue or (), other.dialogue or (), strict=True)
    columns = all(np.array_equal(a, b) for a, b in (*zip(one[:3], other[:3], strict=True), *waits))
    if one.blocks is None or other.blocks is None:
        return columns and one.blocks is other.blocks and one.timed == other.timed
    blocks = all(np.array_equal(a, b) for a, b in zip(one.blocks, other.blocks, strict=True))
    return columns and blocks and one.timed == other.timed


@EACH
def test_a_file_is_known_by_its_content_and_read_whole(name: str, tmp_path: Path) -> None:
    sample = SAMPLES[name]
    recording = read(write(sample, tmp_path / "nothing in the name"))
    assert recording.format == sample.format
    assert recording.remarks[0].startswith(f"read as {sample.format}")
    assert recording.timed == (sample.times_s is not None)
    times_ns = [time_s * 1e9 for time_s in sample.times_s or [0.0] * recording.size]
    assert recording.time_ns.tolist() == pytest.approx(times_ns, rel=1e-15)  # as exact as a double
    assert recording.input_tokens.tolist() == sample.inputs
    assert recording.output_tokens.tolist() == sample.outputs
    assert sum(count for _, count in recording.left_out) == sample.left_out
    assert recording.unread == sample.unread


@EACH
def test_blocks_are_kept(name: str, tmp_path: Path) -> None:
    sample = SAMPLES[name]
    blocks = read(write(sample, tmp_path / "file")).blocks
    if sample.ids is None:
        assert blocks is None
        return
    assert blocks is not None
    assert blocks.tokens == sample.block_tokens
    starts = blocks.starts.tolist()
    assert [blocks.ids[start:stop].tolist() for start, stop in pairwise(starts)] == sample.ids


@EACH
def test_naming_the_format_changes_nothing(name: str, tmp_path: Path) -> None:
    path = write(SAMPLES[name], tmp_path / "file")
    assert same(read(path), read(path, SAMPLES[name].format))
    assert not any(remark.startswith("read as") for remark in read(path, SAMPLES[name].format).remarks)


@EACH
def test_packed_files_are_unpacked(name: str, tmp_path: Path) -> None:
    path = write(SAMPLES[name], tmp_path / "file")
    (tmp_path / "packed").write_bytes(gzip.compress(path.read_bytes()))
    assert same(read(path), read(tmp_path / "packed"))


@EACH
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_reading_in_chunks_is_reading_at_once(
    name: str, rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(SAMPLES[name], tmp_path / "file")
    whole = read(path)
    for module in (csv_chunk, json_chunk, sharegpt):
        monkeypatch.setattr(module, "BATCH_ROWS", rows)
    chunked = read(path)
    assert same(whole, chunked)
    assert whole[6:-1] == chunked[6:-1]


@EACH
def test_a_byte_order_mark_and_the_lines_end_do_not_matter(name: str, tmp_path: Path) -> None:
    path = write(SAMPLES[name], tmp_path / "file")
    for number, end in enumerate((b"\n", b"\r\n", b"\r")):
        (tmp_path / f"{number}").write_bytes(
            b"\xef\xbb\xbf" + path.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", end)
        )
        assert same(read(path), read(tmp_path / f"{number}"))


@pytest.mark.parametrize(
    "text",
    ["a,b\n1,2\n", "1,2,3\n", '{"prompt": "x", "timestamp": 0}\n', "TIMESTAMP;ContextTokens\n", "no table"],
)
def test_an_unknown_layout_is_told_all_that_are_known(text: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(text)
    with pytest.raises(ConfigError, match="has none of the known layouts") as refused:
        read(tmp_path / "file")
    said = str(refused.value)
    assert all(f"\n    {each.name}: {each.layout}" in said for each in FORMATS.values())
    assert "ContextTokens" in said
    assert "num_prefill_tokens" in said


@pytest.mark.parametrize("text", ["", "\n\n", "   "])
def test_an_empty_file_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(text)
    with pytest.raises(ConfigError, match="is an empty file"):
        read(tmp_path / "file")


def test_half_a_gzip_file_is_refused(tmp_path: Path) -> None:
    packed = gzip.compress(SAMPLES["azure_2023"].text.encode() * 1000)
    (tmp_path / "file").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(ConfigError, match="cannot be unpacked"):
        read(tmp_path / "file")


@pytest.mark.parametrize(
    ("path", "format", "requests"),
    [
        ("traces/AzureLLMInferenceTrace_code.csv", "azure", 8_819),
        ("traces/AzureLLMInferenceTrace_conv.csv", "azure", 19_366),
        ("traces/mooncake_synthetic.jsonl.gz", "mooncake", 3_993),
        ("traces/sharegpt_lengths_300.csv", "native", 300),
        ("serving/vllm019_rtxpro6000_llama8b/requests.jsonl", "llmservingsim", 300),
    ],
)
def test_published_traces_are_read_whole(path: str, format: str, requests: int) -> None:
    recording = read(shared_data(*path.split("/")))
    assert (recording.format, recording.size, recording.left_out) == (format, requests, ())
