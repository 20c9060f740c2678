"""Recordings written to files, in the formats that can be written."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from servesim.check import ConfigError, Problem
from servesim.files import in_one_go
from servesim.words import listed
from servesim.workload.formats import (
    azure,
    burstgpt,
    llmservingsim,
    mooncake,
    native,
    parquet,
    splitwise,
    vidur,
    vllm_timed,
)
from servesim.workload.formats.fitting import Room, fitted
from servesim.workload.formats.recording import Recording


class Writer(NamedTuple):
    """The lines of a file, and what has room in it."""

    lines: Callable[[Recording], Iterator[str]]
    room: Room


_VLLM_TAKES = "Model is GPT-4 in every row: vllm bench serve takes no others"
_ODD_BLOCKS = (
    "blocks of {0} tokens, which the file does not say: read it with --timed-trace-chunk-hash-size {0} "
    "(workload.timed_trace.chunk_hash_size={0}), here and in vllm bench serve"
)

WRITERS = {
    "azure": Writer(azure.lines, Room(step_ns=100, dates=True)),
    "mooncake": Writer(
        mooncake.lines,
        Room(
            step_ns=10**6,
            block_tokens=mooncake.BLOCK_TOKENS,
            made_blocks=mooncake.BLOCK_TOKENS,
            turns=True,
        ),
    ),
    "vllm_timed": Writer(
        vllm_timed.lines,
        Room(
            block_tokens=vllm_timed.BLOCK_TOKENS, made_blocks=vllm_timed.BLOCK_TOKENS, odd_blocks=_ODD_BLOCKS
        ),
    ),
    "burstgpt": Writer(burstgpt.lines, Room(least_output=1, remarks=(_VLLM_TAKES,))),
    "vidur": Writer(vidur.lines, Room(no_times=True)),
    "splitwise": Writer(splitwise.lines, Room()),
    "llmservingsim": Writer(llmservingsim.lines, Room()),
    "native": Writer(native.csv_text, Room(no_times=True, any_blocks=True)),
}

_GZIP = ".gz"


def write(recording: Recording, format: str, path: Path) -> list[str]:
    """Write a recording to a file, in one go, and return what has changed: what the format cannot hold.

    A path that ends in .gz is packed. servesim's own format is CSV, JSON lines or Parquet, by the path.

    Raises:
        ConfigError: the format cannot be written, or does not go with the path or with the recording.
        OSError: the file cannot be written.

    """
    if format not in WRITERS:
        message = f"must be {listed(WRITERS)}; others hold what a trace does not have"
        raise ConfigError([Problem("--to", format, message)])
    lines, room = WRITERS[format]
    kept, changes = fitted(recording, room)
    if format == "native":
        _write_native(kept, path)
    else:
        _write_text(lines(kept), path)
    return changes


def _write_native(recording: Recording, path: Path) -> None:
    """Write servesim's own format, in the kind of file that the path says."""
    suffix = path.with_suffix("").suffix if path.suffix == _GZIP else path.suffix
    if suffix == ".parquet" and path.suffix != _GZIP:
        with in_one_go(path) as beside:
            parquet.write(native.columns(recording), beside)
    elif suffix in (".csv", ".jsonl"):
        _write_text((native.csv_text if suffix == ".csv" else native.json_text)(recording), path)
    else:
        message = (
            "must end in .csv, .jsonl or .parquet, the kinds of the native format (or .csv.gz, .jsonl.gz)"
        )
        raise ConfigError([Problem("--out", str(path), message)])


def _write_text(lines: Iterator[str], path: Path) -> None:
    """Write lines, always as the same bytes: a packed file holds no date."""
    with in_one_go(path) as beside, beside.open("wb") as file:
        if path.suffix == _GZIP:
            with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed:
                packed.writelines(map(str.encode, lines))
        else:
            file.writelines(map(str.encode, lines))
