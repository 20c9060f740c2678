"""Mooncake's traces: JSON lines with times in milliseconds and the blocks of the prompts.

Source: https://github.com/kvcache-ai/Mooncake (FAST25-release/traces, README): ``hash_ids`` are blocks of 512
tokens, each id standing for the block and all before it. AIPerf reads and writes the same layout, in which
``hash_ids`` and times may be absent, and extends it by sessions, as Dynamo does; Dynamo's agentic lines,
which wait for others by name, are not modelled.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import repeat
from typing import Any

from servesim.workload.formats.dialogue import TIME, marks
from servesim.workload.formats.json_table import JsonTable
from servesim.workload.formats.recording import Recording
from servesim.workload.formats.rows import blocks, rows

#: Tokens of a block of Mooncake's traces.
BLOCK_TOKENS = 512

#: What a line has of a request of no session: a time.
_BY_ITSELF: tuple[bool, dict[str, Any]] = (True, {})

MOONCAKE = JsonTable(
    "mooncake",
    time=((TIME, 1e6),),
    input=("input_length",),
    output=("output_length",),
    blocks="hash_ids",
    block_tokens=BLOCK_TOKENS,
    needs_time=False,
    turns=True,
    refused=(("wait_for", "waiting for others by name is not modelled; session_id and delay are"),),
)


def lines(recording: Recording) -> Iterator[str]:
    """Yield the lines of a file, with blocks of 512 tokens where there are any, and with sessions."""
    known = blocks(recording) if recording.blocks is not None else repeat(None)
    turns = marks(recording.dialogue) if recording.dialogue is not None else repeat(_BY_ITSELF)
    for (time_ns, inputs, outputs), ids, (dated, keys) in zip(rows(recording), known, turns, strict=False):
        record = keys | ({TIME: round(time_ns / 1e6)} if dated else {})
        record |= {"input_length": inputs, "output_length": outputs}
        yield f"{json.dumps(record | ({} if ids is None else {'hash_ids': ids}))}\n"
