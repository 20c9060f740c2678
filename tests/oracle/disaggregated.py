"""The two kinds of replica of a disaggregated deployment, one step at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from tests.oracle.continuous import Continuous
from tests.oracle.job import Job
from tests.oracle.pool import Content


class Prefill(Continuous):
    """A replica that computes prompts, and holds their blocks until the KV cache has been transferred."""

    def __init__(
        self,
        *args: Any,
        first_token: Literal["prefill", "decode"],
        hand_over: Callable[[Job, float], None],
        **limits: Any,
    ) -> None:
        super().__init__(*args, **limits)
        self.first_token = first_token
        self.hand_over = hand_over
        self.kept: dict[int, list[int]] = {}

    def arrive(self, job: Job, at: float) -> None:
        """Queue a request; on which replica it decodes is not known yet."""
        super().arrive(job, at)
        job.replica, job.prefill_replica = -1, self.index

    def has_room(self, job: Job, cached: list[int], tokens: int) -> bool:
        """Return whether a prompt can be admitted: one that was preempted, only if all of it has room."""
        missing = self.target(job) - max(len(cached) * self.block_size, job.swapped)
        return super().has_room(job, cached, missing if job.preemptions else tokens)

    def reached_target(self, job: Job, now: float) -> None:
        """The prompt is computed: finish, or leave for the decode pool with the blocks still held here."""
        job.end_prefill(now)
        self.running.remove(job)
        if self.first_token == "prefill":
            job.emit(now)
            if job.output_tokens == 1:
                self.finish(job, now)
                return
        self.kept[job.id] = job.blocks
        job.blocks = []
        self.hand_over(job, now)

    def release(self, job: Job, now: float) -> None:
        """Free the blocks of a request whose KV cache has arrived at the decode replica."""
        blocks = self.kept.pop(job.id)
        if self.enable_prefix_caching:
            self.pool.fill(self.contents(job, job.input_tokens // self.block_size), blocks)
        self.pool.give_back(blocks)
        self.forget_own(job)
        if self.waiting:
            self.wake(now)


class Decode(Continuous):
    """A replica that receives prompts' KV caches and decodes behind them.

    ``waiting`` holds only requests that were preempted here. ``incoming`` wait for room, ``landed`` for a
    place in the batch.
    """

    def __init__(self, *args: Any, start_transfer: Callable[[Job, float], None], **limits: Any) -> None:
        super().__init__(*args, **limits)
        self.start_transfer = start_transfer
        self.incoming: list[Job] = []
        self.landed: list[Job] = []

    def arrive(self, job: Job, at: float) -> None:
        """Queue a request whose KV cache is still at its prefill replica."""
        self.incoming.append(job)
        self.wake(at)

    def land(self, job: Job, at: float) -> None:
        """Queue a request whose KV cache is here, but for the newest token's."""
        job.computed = job.input_tokens - 1 + job.generated
        job.streaming = False
        self.landed.append(job)
        self.wake(at)

    def give_up(self, job: Job, now: float) -> None:
        """Take a request out of any queue here; one whose KV is not here yet stays until it is."""
        super().give_up(job, now)
        if job in self.incoming:
            self.incoming.remove(job)
            self.wake(now)
        if job in self.landed:
            self.landed.remove(job)
            self.decline(job, now)

    def decline(self, job: Job, now: float) -> None:
        """Free the room of a request that nobody waits for, when the step under way has ended."""
        if self.computing:
            self.leaving.append(job)
        else:
            self.let_go(job, now)
            self.wake(now)

    def admit(self, budget: int, now: float) -> None:
        """Admit who has landed, then who was preempted here; then let transfers start while there is room."""
        while self.landed and budget > 0 and len(self.running) < self.max_num_seqs:
            job = self.landed.pop(0)
            self.running.append(job)
            self.take(job, 1, now)
            budget -= 1
        if not self.landed:
            super().admit(budget, now)
        if not self.waiting:
            self.reserve(now)

    def reserve(self, now: float) -> None:
        """Reserve the blocks of whoever is to come, in order, and start the transfers."""
        while self.incoming:
            job = self.incoming[0]
            needed = self.blocks_needed(job, self.target(job) - job.computed)
            if needed > self.free:
                break
            self.incoming.pop(0)
            job.blocks = self.pool.allocate(needed)
            self.start_transfer(job, now)

    def contents(self, job: Job, blocks: int) -> list[Content]:
        """Return what is in the first blocks of a request: here it finds nothing but its own."""
        return [(job.own_key, place) for place in range(blocks)]

    def queue_length(self) -> int:
        """Return how many requests wait here, for room or for a place in the batch."""
        return len(self.incoming) + len(self.landed) + len(self.waiting)
