"""The raw log of a run: one row of plain numbers per request, per leap and per torn gap.

Rows go into flat buffers of doubles, which costs half a microsecond on the hot path; what they mean is
worked out later, column by column.
"""

from __future__ import annotations

from array import array
from struct import Struct
from typing import Protocol

from servesim.workload.origin import ANYWHERE
from servesim.workload.request import Request

#: One row per leap; step j (0 to steps - 1) lasts first_step_s + j * increment_s seconds.
STEP_FIELDS = (
    "replica",  # global index
    "start_s",
    "first_step_s",
    "increment_s",
    "steps",
    "sequences",  # rows computed in each step: decodes, prefill chunks, padded rows of a static batch
    "decodes",  # sequences that get one more token in each step
    "prefill_tokens",  # prompt tokens computed, padding of a static batch included
    "context_tokens",  # KV tokens read by the first step; each later one reads as many more as it has tokens
    "pairs",  # query-key pairs of attention in the first step; as many more later for each query of a decode
    "kv_blocks",  # held during the first step
    "kv_blocks_last",  # held during the last step
    "waiting",  # requests in the queue during the steps
    "preempted",  # requests preempted at the start
    "stalled",  # of the decodes, those that had waited for prompts before the first step
    "emitted",  # tokens that each step gives the decodes; a fraction where each gets its own number in a step
)
STEPS, DECODES, KV_BLOCKS_LAST, STALLED = map(
    STEP_FIELDS.index, ("steps", "decodes", "kv_blocks_last", "stalled")
)

#: One row per request, written when it finishes or is dropped, or when the run is cut.
REQUEST_FIELDS = (
    "request_id",
    "due_s",
    "sent_s",
    "arrived_s",
    "input_tokens",
    "output_tokens",
    "status",  # index into STATUSES
    "reason",  # index into REASONS
    "replica",  # where it decodes; -1: nowhere
    "prefill_replica",  # where it was prefilled, when that is another pool; else -1
    "first_token_s",
    "finished_s",
    "generated",  # tokens emitted
    "queue_s",
    "prefill_s",
    "preempted_s",
    "transfer_s",
    "decode_queue_s",
    "preemptions",
    "cached_tokens",
    "recovered_tokens",  # of the cached, those found again after a preemption
    "loaded_tokens",
    "session",  # of its conversation; -1: none
    "turn",
    "tenant",
    "priority",
    "attempt",
)

#: One row per gap between two tokens of a request that is not one step long: a preemption, a KV transfer; and
#: one for all the equal gaps of sequences that have waited for prompts together, whoever they are.
GAP_FIELDS = ("request_id", "end_s", "gap_s", "sequences")

#: The request of a gap that several have.
NOBODY = -1

STATUSES = ("completed", "dropped", "timed_out", "running", "queued")
COMPLETED, DROPPED, TIMED_OUT, RUNNING, QUEUED = range(len(STATUSES))

REASONS = ("", "prompt_too_long", "queue_full", "slo")
NO_REASON, PROMPT_TOO_LONG, QUEUE_FULL, OVER_SLO = range(len(REASONS))


#: A row as bytes. Packing whole rows costs half as much as extending the buffers number by number.
pack_step = Struct(f"{len(STEP_FIELDS)}d").pack
pack_gap = Struct(f"{len(GAP_FIELDS)}d").pack
_FIRST_OF_REUSE = REQUEST_FIELDS.index("cached_tokens")
_pack_request = Struct(f"{_FIRST_OF_REUSE}d").pack
_pack_reuse = Struct(f"{len(REQUEST_FIELDS) - _FIRST_OF_REUSE}d").pack
#: The last columns of a request that nobody may have left anything for, itself included.
_NOTHING_REUSED = _pack_reuse(0, 0, 0, *ANYWHERE[:5])


class Log(Protocol):
    """Where the rows of a run are written: flat buffers of doubles, to be extended ``frombytes``."""

    requests: array[float]
    steps: array[float]
    gaps: array[float]


def request_row(request: Request, status: int, reason: int = NO_REASON) -> bytes:
    """Return the row of a request."""
    row = _pack_request(
        request.id,
        request.due_s,
        request.sent_s,
        request.arrived_s,
        request.input_tokens,
        request.output_tokens,
        status,
        reason,
        request.replica,
        request.prefill_replica,
        request.first_token_s,
        request.finished_s,
        request.generated,
        request.queue_s,
        request.prefill_s,
        request.preempted_s,
        request.transfer_s,
        request.decode_queue_s,
        request.preemptions,
    )
    if not request.may_be_cached:
        return row + _NOTHING_REUSED
    reused = request.cached_tokens, request.recovered_tokens, request.loaded_tokens
    return row + _pack_reuse(*reused, *request.origin[:5])
