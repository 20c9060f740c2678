"""The format of servesim's own: CSV, JSON lines or Parquet with the columns of ``requests.parquet``.

Columns are ``sent_s`` or ``arrival_s`` (seconds; absent: no times), ``input_tokens`` and ``output_tokens``;
for the prefixes that prompts share also ``block_hashes`` and ``block_tokens``, the tokens of a block. Others
are not read. In CSV the ids of ``block_hashes`` have blanks between them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any

from servesim.workload.formats import parquet
from servesim.workload.formats.csv_table import CsvTable
from servesim.workload.formats.json_table import JsonTable
from servesim.workload.formats.options import Options
from servesim.workload.formats.recording import Recording
from servesim.workload.formats.rows import blocks, csv_lines, rows
from servesim.workload.formats.source import Source

TIMES = ("sent_s", "arrival_s")
INPUTS = ("input_tokens", "input_toks")
OUTPUTS = ("output_tokens", "output_toks")
BLOCKS, BLOCK_TOKENS = "block_hashes", "block_tokens"

SESSION = "session"
_NO_SESSIONS = (
    "sessions, and so what prompts share, are not read; servesim trace RUN_FOLDER --to native keeps what "
    "the turns of a session share"
)

_CSV = CsvTable(
    "native",
    time=TIMES,
    input=INPUTS,
    output=OUTPUTS,
    needs_time=False,
    blocks=BLOCKS,
    block_tokens=BLOCK_TOKENS,
)
_JSON = JsonTable(
    "native",
    time=tuple((name, 1e9) for name in TIMES),
    input=INPUTS,
    output=OUTPUTS,
    needs_time=False,
    blocks=BLOCKS,
    block_tokens=BLOCK_TOKENS,
)


class Native:
    """The layout, in any of the three kinds of file."""

    name = "native"
    layout = (
        "CSV, JSON lines or Parquet with the columns perhaps sent_s or arrival_s, input_tokens, "
        "output_tokens, perhaps block_hashes and block_tokens"
    )

    def claims(self, columns: Sequence[str]) -> bool:
        """Tell whether these are columns of this layout."""
        return _JSON.claims(columns)

    def read(self, source: Source, options: Options) -> Recording:
        """Read a file of any of the three kinds; no option concerns it."""
        if source.is_parquet:
            known = frozenset((*TIMES, *INPUTS, *OUTPUTS, BLOCKS, BLOCK_TOKENS))
            names = parquet.names(source.path)
            others = tuple(name for name in names if name not in known)
            found = _JSON.gather(parquet.rows(source.path, known), source.name, unread=others)
            lost = SESSION in names and BLOCKS not in names and parquet.has_any(source.path, SESSION)
            return found._replace(remarks=(*found.remarks, _NO_SESSIONS)) if lost else found
        table = _JSON if source.first_letter() in ("{", "[") else _CSV
        return table.read(source, options)


NATIVE = Native()


def csv_text(recording: Recording) -> Iterator[str]:
    """Yield the lines of a CSV file."""
    return csv_lines(",".join(_names(recording)), (_cells(row) for row in _records(recording)))


def json_text(recording: Recording) -> Iterator[str]:
    """Yield the lines of a file of JSON lines."""
    names = _names(recording)
    return (f"{json.dumps(dict(zip(names, row, strict=True)))}\n" for row in _records(recording))


def columns(recording: Recording) -> dict[str, list[Any]]:
    """Return the columns of a Parquet file."""
    names = _names(recording)
    return dict(zip(names, map(list, zip(*_records(recording), strict=True)), strict=True))


def _names(recording: Recording) -> list[str]:
    timed, blocked = recording.timed, recording.blocks is not None
    return [
        *(["sent_s"] if timed else []),
        "input_tokens",
        "output_tokens",
        *([BLOCKS, BLOCK_TOKENS] if blocked else []),
    ]


def _records(recording: Recording) -> Iterator[list[Any]]:
    """Yield what stands in each row, by the names of the columns."""
    known = blocks(recording) if recording.blocks else repeat(None)
    size = recording.blocks.tokens if recording.blocks else 0
    for (time_ns, *lengths), ids in zip(rows(recording), known, strict=False):
        times = [time_ns / 1e9] if recording.timed else []
        yield [*times, *lengths, *([] if ids is None else [ids, size])]


def _cells(row: list[Any]) -> tuple[Any, ...]:
    return tuple(" ".join(map(str, cell)) if isinstance(cell, list) else cell for cell in row)
