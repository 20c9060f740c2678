"""LLMServingSim's traces: JSON lines with lengths and times.

Source: https://github.com/casys-kaist/LLMServingSim (README): ``arrival_time_ns`` in nanoseconds; the records
of its validation runs have ``arrival_time`` in seconds since 1970, beside timestamps of the engine. The
requests of agents depend on each other's answers, so that no times of sending stand in the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from servesim.workload.formats.json_table import JsonTable
from servesim.workload.formats.recording import Recording
from servesim.workload.formats.rows import rows

LLMSERVINGSIM = JsonTable(
    "llmservingsim",
    time=(("arrival_time_ns", 1.0), ("arrival_time", 1e9)),
    input=("input_toks",),
    output=("output_toks",),
    refused=(
        (
            "sub_requests",
            "agents are not modelled yet: each sub-request waits for the answer before it and for a tool",
        ),
    ),
)


def lines(recording: Recording) -> Iterator[str]:
    """Yield the lines of a file."""
    for time_ns, inputs, outputs in rows(recording):
        record = {"input_toks": inputs, "output_toks": outputs, "arrival_time_ns": time_ns}
        yield f"{json.dumps(record)}\n"
