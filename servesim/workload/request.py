"""One request, from sending to its last token."""

from __future__ import annotations

from math import nan


class Request:
    """What one user asked for, and where its service stands.

    ``generated``, ``computed``, ``blocks`` and ``anchor`` are the scheduler's view; the rest are the
    moments and the parts of its latency that the records keep. Times are simulated seconds, and ``nan``
    means "has not happened".

    Attributes:
        input_tokens: tokens of the prompt.
        output_tokens: tokens to generate, the first one included.
        generated: tokens emitted so far (kept up to date only while the request is not decoding).
        computed: tokens whose KV is in the cache (kept up to date only while it is not decoding).
        blocks: KV blocks held (kept up to date only while it is not decoding).
        anchor: while decoding, the engine's step count minus the tokens computed (a constant).
        paused_s: the moment of a preemption from which it has not recovered yet.
        handed_s: the start of the present stage of a hand-over from a prefill to a decode replica.
    """

    __slots__ = (
        "anchor",
        "blocks",
        "computed",
        "decode_queue_s",
        "finished_s",
        "first_token_s",
        "generated",
        "handed_s",
        "id",
        "input_tokens",
        "output_tokens",
        "paused_s",
        "preempted_s",
        "preemptions",
        "prefill_replica",
        "prefill_s",
        "queue_s",
        "replica",
        "sent_s",
        "transfer_s",
    )

    def __init__(self, id: int, sent_s: float, input_tokens: int, output_tokens: int) -> None:
        self.id = id
        self.sent_s = sent_s
        self.input_tokens = input_tokens
        self.output_tokens = output_tokens
        self.generated = 0
        self.computed = 0
        self.blocks = 0
        self.anchor = 0
        self.preemptions = 0
        self.replica = -1
        self.prefill_replica = -1
        self.first_token_s = nan
        self.finished_s = nan
        self.paused_s = nan
        self.handed_s = nan
        self.queue_s = nan
        self.prefill_s = 0.0
        self.preempted_s = 0.0
        self.transfer_s = 0.0
        self.decode_queue_s = 0.0
