"""Mooncake's traces: JSON lines with times in milliseconds and the blocks of the prompts.

Source: https://github.com/kvcache-ai/Mooncake (FAST25-release/traces, README): ``hash_ids`` are blocks of 512
tokens, each id standing for the block and all before it. AIPerf reads and writes the same layout, in which
``hash_ids`` may be absent.
"""

from servesim.workload.formats.json_table import JsonTable

#: Tokens of a block of Mooncake's traces.
BLOCK_TOKENS = 512

MOONCAKE = JsonTable(
    "mooncake",
    time=(("timestamp", 1e6),),
    input=("input_length",),
    output=("output_length",),
    blocks="hash_ids",
    block_tokens=BLOCK_TOKENS,
)
