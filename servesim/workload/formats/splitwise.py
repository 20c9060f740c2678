"""The traces of the simulator of Splitwise: a CSV with a row for each request.

Source: https://github.com/Mutinifni/splitwise-sim (generate_trace.py): times are seconds, and a row is one
request, so its ``batch_size`` is 1.
"""

from __future__ import annotations

from collections.abc import Iterator

from servesim.workload.formats.csv_table import CsvTable
from servesim.workload.formats.recording import Recording
from servesim.workload.formats.rows import csv_lines, rows, seconds

SPLITWISE = CsvTable(
    "splitwise",
    time=("arrival_timestamp",),
    input=("prompt_size",),
    output=("token_size",),
    ones="batch_size",
)


def lines(recording: Recording) -> Iterator[str]:
    """Yield the lines of a file; requests of type 2 are those of language models."""
    cells = (
        (number, 2, 0, seconds(time_ns), 1, inputs, outputs)
        for number, (time_ns, inputs, outputs) in enumerate(rows(recording))
    )
    names = "request_id,request_type,application_id,arrival_timestamp,batch_size,prompt_size,token_size"
    return csv_lines(names, cells)
