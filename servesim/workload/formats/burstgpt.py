"""BurstGPT: a CSV of two months of requests to a campus gateway, and later ones with sessions.

Source: https://github.com/HPMLL/BurstGPT (README.md). Times are seconds. The first two files have six
columns, the third has ``Session ID`` and ``Elapsed time`` after the time. A request that failed has 0
response tokens.
"""

from servesim.workload.formats.csv_table import CsvTable, Left

BURSTGPT = CsvTable(
    "burstgpt",
    time=("Timestamp",),
    input=("Request tokens",),
    output=("Response tokens",),
    left=Left("Response tokens", frozenset({"0", "0.0"}), "failed requests (0 response tokens)"),
)
