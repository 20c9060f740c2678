"""The formats of trace files: one module each, and :func:`read` for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from servesim.check import ConfigError, Problem
from servesim.workload.formats.options import Options
from servesim.workload.formats.recognition import FORMATS, Recognised, recognised
from servesim.workload.formats.recording import Blocks, Recording
from servesim.workload.formats.source import opened

__all__ = ["Blocks", "Options", "Recording", "read"]


def read(path: Path | str, format: str = "auto", **options: Any) -> Recording:
    """Read a trace file, a chunk of rows at a time; only its numbers are kept (24 bytes a row, 8 a block).

    Args:
        path: the file; it may be packed with gzip.
        format: a name of a format, or auto: told from what is in the file.
        options: fields of :class:`Options`, where a format needs them.

    Raises:
        ConfigError: with every bad value and its line (the first 20 of them, then their number); or an option
            is for another format.

    """
    told = Options(**options)
    with opened(Path(path).expanduser()) as source:
        found = recognised(source, told) if format == "auto" else Recognised(FORMATS[format])
        chosen = found.format
        if unused := list(_unused(told, chosen.name)):
            raise ConfigError(unused)
        recording = chosen.read(source, told)
    columns = f": {', '.join(recording.read)}" if recording.read else ""
    remarks = [f"read as {chosen.name}{columns}"] if format == "auto" else []
    remarks += [found.doubt] if found.doubt else []
    return recording._replace(remarks=(*remarks, *recording.remarks, *_on_blocks(recording)))


def _unused(options: Options, format: str) -> Iterator[Problem]:
    """Yield the options that are for another format."""
    owners = {"timed_trace": "vllm_timed", "tokenizer": "sharegpt", "characters_per_token": "sharegpt"}
    for name, owner in owners.items():
        value = getattr(options, name)
        if format != owner and value != getattr(Options(), name):
            given = None if is_dataclass(value) else value
            yield Problem(name, given, f"is for traces in the format {owner}, not for {format}")


def _on_blocks(recording: Recording) -> list[str]:
    """Return what is odd about the blocks."""
    if recording.blocks is None:
        return []
    needed = -(-recording.input_tokens // recording.blocks.tokens)
    odd = int(np.count_nonzero(needed != recording.blocks.counts))
    if not odd:
        return []
    return [
        f"prompts that have more or fewer blocks of {recording.blocks.tokens} tokens than they need: {odd:,}"
    ]
