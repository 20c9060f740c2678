"""The traces of the simulator of Splitwise: a CSV with a row for each request.

Source: https://github.com/Mutinifni/splitwise-sim (generate_trace.py): times are seconds, and a row is one
request, so its ``batch_size`` is 1.
"""

from servesim.workload.formats.csv_table import CsvTable

SPLITWISE = CsvTable(
    "splitwise",
    time=("arrival_timestamp",),
    input=("prompt_size",),
    output=("token_size",),
    ones="batch_size",
)
