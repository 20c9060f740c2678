"""One step of one replica, as the oracle writes it down."""

from __future__ import annotations

from typing import NamedTuple


class Step(NamedTuple):
    """What a replica computes in one step."""

    replica: int
    start_s: float
    duration_s: float
    sequences: int
    """Rows computed: decodes and prefill chunks, and the padded rows of a static batch."""
    decodes: int
    """Sequences that get a further token one step after their last."""
    prefill_tokens: int
    context: float
    """KV tokens read, the new ones included."""
    pairs: float
    """Query-key pairs of attention: a chunk of q tokens behind p cached ones has q p + q (q + 1) / 2."""
    kv_blocks: int
    """Blocks held when the step begins."""
    waiting: int
    preempted: int
    """Requests preempted since the step before was put together."""
    emitted: float
    """Tokens that the decodes get, fractions of what is spread evenly included."""


def chunk_pairs(new: int, cached: int) -> int:
    """Return the query-key pairs of a chunk: its token number i (from 1) attends to ``cached`` + i."""
    return sum(cached + i for i in range(1, new + 1))
