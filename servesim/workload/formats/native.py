"""The format of servesim's own: CSV, JSON lines or Parquet with the columns of ``requests.parquet``.

Columns are ``sent_s`` or ``arrival_s`` (seconds; absent: no times), ``input_tokens`` and ``output_tokens``;
for the prefixes that prompts share also ``block_hashes`` and ``block_tokens``, the tokens of a block. Others
are not read. In CSV the ids of ``block_hashes`` have blanks between them.
"""

from __future__ import annotations

from collections.abc import Sequence

from servesim.workload.formats.csv_table import CsvTable
from servesim.workload.formats.json_table import JsonTable
from servesim.workload.formats.options import Options
from servesim.workload.formats.parquet import names, rows
from servesim.workload.formats.recording import Recording
from servesim.workload.formats.source import Source

TIMES = ("sent_s", "arrival_s")
INPUTS = ("input_tokens", "input_toks")
OUTPUTS = ("output_tokens", "output_toks")
BLOCKS, BLOCK_TOKENS = "block_hashes", "block_tokens"

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
            others = tuple(name for name in names(source.path) if name not in known)
            return _JSON.gather(rows(source.path, known), source.name, unread=others)
        table = _JSON if source.first_letter() == "{" else _CSV
        return table.read(source, options)


NATIVE = Native()
