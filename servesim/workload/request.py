"""One request, from sending to its last token."""

from __future__ import annotations

from math import nan

from servesim.workload.origin import ANYWHERE, Origin


class Request:
    """What one user asked for, and where its service stands.

    ``generated``, ``computed``, ``blocks`` and ``anchor`` are the scheduler's view, kept up to date only
    while the request is not decoding; the rest are the moments and the parts of its latency that the
    records keep, in simulated seconds, where ``nan`` means "has not happened".

    Attributes:
        due_s: when the client would have sent it, had nothing held it back.
        sent_s: when the client sent it.
        arrived_s: when it reaches the router.
        input_tokens: tokens of the prompt.
        output_tokens: tokens to generate, the first one included.
        generated: tokens emitted so far.
        computed: tokens whose KV is in the cache.
        blocks: KV blocks held.
        swapped: tokens whose KV the host holds since it was preempted.
        cached_tokens: tokens whose KV it found in the cache when it was scheduled, all times together.
        recovered_tokens: those of them that it found again after a preemption.
        loaded_tokens: tokens whose KV was loaded from a tier behind the GPU, all times together.
        anchor: while decoding, the engine's step count minus the tokens computed (a constant).
        paused_s: when it was preempted, until it has recovered; else None.
        handed_s: when its present stage of a hand-over between pools began; else None.
        origin: where it comes from.
        may_be_cached: whether anybody may have left KV of it in a cache: others who share it, or itself.

    """

    __slots__ = (
        "anchor",
        "arrived_s",
        "blocks",
        "cached_tokens",
        "computed",
        "decode_queue_s",
        "due_s",
        "finished_s",
        "first_token_s",
        "generated",
        "handed_s",
        "id",
        "input_tokens",
        "loaded_tokens",
        "may_be_cached",
        "origin",
        "output_tokens",
        "paused_s",
        "preempted_s",
        "preemptions",
        "prefill_replica",
        "prefill_s",
        "queue_s",
        "recovered_tokens",
        "replica",
        "sent_s",
        "swapped",
        "transfer_s",
    )

    def __init__(
        self, id: int, due_s: float, input_tokens: int, output_tokens: int, origin: Origin = ANYWHERE
    ) -> None:
        self.id = id
        self.origin = origin
        self.may_be_cached = origin is not ANYWHERE
        self.due_s = self.sent_s = self.arrived_s = due_s
        self.input_tokens = input_tokens
        self.output_tokens = output_tokens
        self.generated = 0
        self.computed = 0
        self.blocks = 0
        self.swapped = 0
        self.cached_tokens = self.recovered_tokens = self.loaded_tokens = 0
        self.anchor = 0
        self.preemptions = 0
        self.replica = -1
        self.prefill_replica = -1
        self.paused_s: float | None = None
        self.handed_s: float | None = None
        self.queue_s = nan
        self.first_token_s = nan
        self.finished_s = nan
        self.prefill_s = 0.0
        self.preempted_s = 0.0
        self.transfer_s = 0.0
        self.decode_queue_s = 0.0

    def missing_tokens(self) -> int:
        """Return the tokens to compute before it emits its next one (1 while it decodes)."""
        return self.input_tokens + self.generated - self.computed

    def begin(self, now: float) -> None:
        """Be scheduled: for the first time, on the pool it was handed to, or again after a preemption."""
        if self.handed_s is not None:
            self.decode_queue_s += now - self.handed_s
            self.handed_s = None
        elif not self.preemptions:
            self.queue_s = now - self.arrived_s if now > self.arrived_s else 0.0
        elif not self.generated and self.paused_s is not None:
            self.preempted_s += now - self.paused_s
            self.paused_s = None

    def end_prefill(self, now: float) -> None:
        """Have the whole prompt computed for the first time."""
        self.prefill_s = now - self.arrived_s - self.queue_s - self.preempted_s

    def start_transfer(self, now: float) -> None:
        """Have found room on the decode replica; the KV sets out."""
        if self.handed_s is not None:
            self.decode_queue_s += now - self.handed_s
        self.handed_s = now

    def land(self, now: float) -> None:
        """Have the last byte of its KV on the decode replica."""
        if self.handed_s is not None:
            self.transfer_s = now - self.handed_s
        self.handed_s = now

    def preempt(self, now: float) -> None:
        """Lose its blocks and wait again; what it had not recovered from before goes on."""
        if self.paused_s is None:
            self.paused_s = now
        self.computed = self.blocks = 0
        self.may_be_cached = True
        self.preemptions += 1

    def resume(self, now: float) -> float:
        """Emit a token that is not the first and does not follow a decode step; return the gap before it.

        It was preempted, and recomputed up to now; or it was handed over after its first token.
        """
        if self.paused_s is None:
            return now - self.first_token_s
        gap_s = now - self.paused_s
        self.preempted_s += gap_s
        self.paused_s = None
        return gap_s
