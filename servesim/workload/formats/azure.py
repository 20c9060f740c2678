"""The Azure LLM inference traces: a CSV of times and lengths.

Source: https://github.com/Azure/AzurePublicDataset (AzureLLMInferenceDataset2023.md and 2024.md). Lines end
in CRLF. Times of 2023 have seven fractional digits and no zone, ``2023-11-16 18:15:46.6805900``; those of
2024 have six or none, and one: ``2024-05-12 00:00:00+00:00``. Times may also be plain seconds.
"""

from servesim.workload.formats.csv_table import CsvTable

AZURE = CsvTable(
    "azure", time=("TIMESTAMP",), input=("ContextTokens",), output=("GeneratedTokens",), clock=True
)
