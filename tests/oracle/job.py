"""One request as the oracle sees it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from math import isnan, nan

from servesim.workload.origin import ANYWHERE, Origin
from tests.oracle.pool import Content


@dataclass
class Draft:
    """What a sequence that decodes speculatively still gets: ``tokens`` in ``steps``, spread evenly."""

    computed: int
    """Tokens whose KV was there at first."""
    tokens: int
    steps: int
    done: int = 0
    """Steps behind it."""

    @property
    def whole(self) -> int:
        """Tokens whose KV is there now."""
        return self.computed + self.done * self.tokens // self.steps

    @property
    def exact(self) -> float:
        """The same, fractions included."""
        return self.computed + self.done * self.tokens / self.steps


@dataclass(eq=False)
class Job:
    """A request with the moments of its life; ``nan`` means "has not happened"."""

    id: int
    due_s: float
    input_tokens: int
    output_tokens: int

    origin: Origin = ANYWHERE

    sent_s: float = nan
    arrived_s: float = nan
    generated: int = 0
    computed: int = 0
    blocks: list[int] = field(default_factory=list)
    """The KV blocks that it holds, by number, its first tokens' first."""
    cached_tokens: int = 0
    swapped: int = 0
    """Tokens whose KV the host holds."""
    streaming: bool = False
    """Whether it has emitted a token since it was last admitted: its next step is a decode."""

    draft: Draft | None = None
    """How its tokens come, while it decodes speculatively."""

    replica: int = -1
    prefill_replica: int = -1
    preemptions: int = 0
    token_times: list[float] = field(default_factory=list)
    scheduled_s: float = nan
    prefilled_s: float = nan
    finished_s: float = nan
    hung_up_s: float = nan
    """Until when its client has waited."""
    unheard: list[float] = field(default_factory=list)
    """When tokens were emitted that its client did not wait for."""
    paused_s: float | None = None
    """When it was preempted, or had its last token if it decoded; until it has recovered."""
    landed_s: float | None = None
    """When its KV cache arrived, until it is scheduled there."""

    queue_s: float = nan
    prefill_s: float = 0.0
    preempted_s: float = 0.0
    transfer_s: float = 0.0
    decode_queue_s: float = 0.0

    @property
    def given_up(self) -> bool:
        """Whether its client has hung up."""
        return not isnan(self.hung_up_s)

    @property
    def own_key(self) -> tuple[str, int]:
        """The key of what nobody else asks for."""
        return "own", self.id

    def content(self, place: int, block_size: int) -> Content:
        """Return what is in a block: the key of its last token, and its place."""
        last = (place + 1) * block_size - 1
        stream: Hashable = self.own_key if self.origin.stream is None else self.origin.stream
        return next((key for key, end in self.origin.prefix if last < end), stream), place

    def was_scheduled(self, now: float) -> None:
        """Note that it is part of the step that starts at ``now``."""
        if isnan(self.scheduled_s):
            self.scheduled_s = max(now, self.arrived_s)
            self.queue_s = self.scheduled_s - self.arrived_s
        if self.landed_s is not None:
            self.decode_queue_s += now - self.landed_s
            self.landed_s = None
        if self.generated == 0:
            self.resume(now)

    def was_preempted(self, now: float) -> None:
        """Note that it lost its blocks."""
        if self.paused_s is None:
            self.paused_s = self.token_times[-1] if self.streaming else now
        self.blocks = []
        self.computed = 0
        self.streaming = False
        self.draft = None
        self.preemptions += 1

    def resume(self, now: float) -> None:
        """End the time that a preemption has cost."""
        if self.paused_s is not None:
            self.preempted_s += now - self.paused_s
            self.paused_s = None

    def end_prefill(self, now: float) -> None:
        """Note that its prompt has been computed."""
        self.prefilled_s = now
        self.prefill_s = now - self.scheduled_s - self.preempted_s

    def emit(self, now: float, tokens: int = 1) -> None:
        """Emit one token, or several in one piece."""
        self.generated += tokens
        self.streaming = True
        self.token_times.append(now)
        self.resume(now)

    @property
    def first_token_s(self) -> float:
        """When its first token left."""
        return self.token_times[0] if self.token_times else nan
