"""The formats of trace files: one module each, and :func:`read` for all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from servesim.workload.formats.options import Options
from servesim.workload.formats.recognition import FORMATS, recognised
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
        ConfigError: with every bad value and its line (the first 20 of them, then their number).

    """
    told = Options(**options)
    with opened(Path(path).expanduser()) as source:
        chosen = recognised(source, told) if format == "auto" else FORMATS[format]
        recording = chosen.read(source, told)
    columns = f": {', '.join(recording.read)}" if recording.read else ""
    remarks = [f"read as {chosen.name}{columns}"] if format == "auto" else []
    return recording._replace(remarks=(*remarks, *recording.remarks, *_on_blocks(recording)))


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
