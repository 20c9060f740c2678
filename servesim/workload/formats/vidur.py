"""Vidur's traces: a CSV of lengths, with or without times.

Source: https://github.com/microsoft/vidur (vidur/request_generator/trace_replay_request_generator.py): times
are seconds in ``arrived_at``. The length files that it ships, in data/processed_traces, have no times, but
``num_total_tokens`` and ``pd_ratio``.
"""

from __future__ import annotations

from collections.abc import Iterator

from servesim.workload.formats.csv_table import CsvTable
from servesim.workload.formats.recording import Recording
from servesim.workload.formats.rows import csv_lines, rows, seconds

VIDUR = CsvTable(
    "vidur",
    time=("arrived_at",),
    input=("num_prefill_tokens",),
    output=("num_decode_tokens",),
    needs_time=False,
)


def lines(recording: Recording) -> Iterator[str]:
    """Yield the lines of a file, with times where there are any."""
    names = "num_prefill_tokens,num_decode_tokens"
    if not recording.timed:
        return csv_lines(names, (row[1:] for row in rows(recording)))
    cells = ((seconds(time_ns), *lengths) for time_ns, *lengths in rows(recording))
    return csv_lines(f"arrived_at,{names}", cells)
