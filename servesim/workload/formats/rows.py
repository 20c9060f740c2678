"""The requests of a recording one by one, as the lines of a file are made of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from servesim.workload.batch import BATCH_ROWS
from servesim.workload.formats.recording import Recording

_NS = 10**9


def rows(recording: Recording) -> Iterator[tuple[int, int, int]]:
    """Yield time (ns), tokens in and tokens out of each request."""
    for start in range(0, recording.size, BATCH_ROWS):
        some = slice(start, start + BATCH_ROWS)
        columns = recording.time_ns, recording.input_tokens, recording.output_tokens
        yield from zip(*(column[some].tolist() for column in columns), strict=True)


def blocks(recording: Recording) -> Iterator[list[int]]:
    """Yield the ids of the blocks of each prompt; there must be blocks."""
    assert recording.blocks is not None
    ids, starts = recording.blocks.ids, recording.blocks.starts
    for start, stop in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        yield ids[start:stop].tolist()


def seconds(time_ns: int) -> str:
    """Return a time in seconds with as many digits as it needs: 3, 0.25."""
    whole, rest = divmod(time_ns, _NS)
    return f"{whole}.{rest:09d}".rstrip("0").rstrip(".")


def csv_lines(names: str, cells: Iterator[tuple[Any, ...]]) -> Iterator[str]:
    """Yield the lines of a CSV file; no cell may need quotes."""
    yield f"{names}\n"
    for row in cells:
        yield f"{','.join(map(str, row))}\n"
