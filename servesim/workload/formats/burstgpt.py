"""BurstGPT: a CSV of two months of requests to a campus gateway, and later ones with sessions.

Source: https://github.com/HPMLL/BurstGPT (README.md). Times are seconds. The first two files have six
columns, the third has ``Session ID`` and ``Elapsed time`` after the time. A request that failed has 0
response tokens.
"""

from __future__ import annotations

from collections.abc import Iterator

from servesim.workload.formats.csv_table import CsvTable, Left
from servesim.workload.formats.recording import Recording
from servesim.workload.formats.rows import csv_lines, rows, seconds

BURSTGPT = CsvTable(
    "burstgpt",
    time=("Timestamp",),
    input=("Request tokens",),
    output=("Response tokens",),
    left=Left("Response tokens", frozenset({"0", "0.0"}), "failed requests (0 response tokens)"),
)


def lines(recording: Recording) -> Iterator[str]:
    """Yield the lines of a file of six columns; its model is one that vLLM's reader takes."""
    cells = (
        (seconds(time_ns), "GPT-4", inputs, max(outputs, 1), inputs + max(outputs, 1), "Conversation log")
        for time_ns, inputs, outputs in rows(recording)
    )
    return csv_lines("Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type", cells)
