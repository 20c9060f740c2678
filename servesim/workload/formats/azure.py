"""The Azure LLM inference traces: a CSV of times and lengths.

Source: https://github.com/Azure/AzurePublicDataset (AzureLLMInferenceDataset2023.md and 2024.md). Lines end
in CRLF. Times of 2023 have seven fractional digits and no zone, ``2023-11-16 18:15:46.6805900``; those of
2024 have six or none, and one: ``2024-05-12 00:00:00+00:00``. Times may also be plain seconds.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from servesim.workload.formats.csv_table import CsvTable
from servesim.workload.formats.recording import Recording
from servesim.workload.formats.rows import rows

AZURE = CsvTable(
    "azure", time=("TIMESTAMP",), input=("ContextTokens",), output=("GeneratedTokens",), clock=True
)


def lines(recording: Recording) -> Iterator[str]:
    """Yield the lines of a file of 2023; times that count from 0 become dates of 1970."""
    yield "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
    for time_ns, inputs, outputs in rows(recording):
        day = np.datetime_as_string(np.datetime64(time_ns, "ns")).replace("T", " ")
        yield f"{day[:-2]},{inputs},{outputs}\r\n"
