"""Vidur's traces: a CSV of lengths, with or without times.

Source: https://github.com/microsoft/vidur (vidur/request_generator/trace_replay_request_generator.py): times
are seconds in ``arrived_at``. The length files that it ships, in data/processed_traces, have no times, but
``num_total_tokens`` and ``pd_ratio``.
"""

from servesim.workload.formats.csv_table import CsvTable

VIDUR = CsvTable(
    "vidur",
    time=("arrived_at",),
    input=("num_prefill_tokens",),
    output=("num_decode_tokens",),
    needs_time=False,
)
