"""Static batching, one step at a time."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, inf

from tests.costs import AffineStepTime
from tests.oracle.job import Job
from tests.oracle.step import Step, chunk_pairs


class Static:
    """One replica: a queue, and a batch that is computed to its end before the next one starts.

    ``boundary_s`` is when the step under way ends, or when an idle replica starts a batch as things stand;
    infinite: never.
    """

    def __init__(
        self,
        index: int,
        step_time: AffineStepTime,
        on_finish: Callable[[Job], None],
        *,
        kv_blocks: int,
        block_size: int,
        batch_size: int,
        batch_timeout_s: float,
    ) -> None:
        self.index = index
        self.step_time = step_time
        self.on_finish = on_finish
        self.kv_blocks = kv_blocks
        self.block_size = block_size
        self.batch_size = batch_size
        self.batch_timeout_s = batch_timeout_s

        self.boundary_s = inf
        self.waiting: list[Job] = []
        self.batch: list[Job] = []
        self.steps_done = 0
        self.steps: list[Step] = []

    @property
    def computing(self) -> bool:
        """Whether a step is under way."""
        return bool(self.batch)

    @property
    def free(self) -> int:
        """Blocks that no batch has reserved."""
        return self.kv_blocks - self.blocks(self.batch)

    def blocks(self, members: list[Job]) -> int:
        """Return the blocks that a batch reserves: every member the longest prompt and the longest output."""
        return len(members) * ceil((longest_prompt(members) + longest_output(members)) / self.block_size)

    def arrive(self, job: Job, at: float) -> None:
        """Queue a request; an idle replica starts when the batch is full or its oldest has waited enough."""
        self.waiting.append(job)
        job.replica = self.index
        if not self.batch:
            self.boundary_s = min(self.boundary_s, self.next_start(at))

    def give_up(self, job: Job, now: float) -> None:
        """Take a waiting request out of the queue; the row of a member is computed to the batch's end."""
        if job in self.waiting:
            self.waiting.remove(job)
            if not self.batch:
                self.boundary_s = self.next_start(now)

    def next_start(self, now: float) -> float:
        """Return when the next batch starts, as the queue stands."""
        if not self.waiting:
            return inf
        if len(self.waiting) >= self.batch_size:
            return now
        return max(now, self.waiting[0].arrived_s + self.batch_timeout_s)

    def boundary(self, now: float) -> None:
        """End the step under way, and begin the next step or the next batch."""
        if not self.batch:
            self.start_batch(now)
            return
        self.end_step(now)
        if self.steps_done < longest_output(self.batch):
            self.begin_step(now)
            return
        self.batch = []
        self.boundary_s = self.next_start(now)
        if self.boundary_s == now:
            self.start_batch(now)

    def start_batch(self, now: float) -> None:
        """Take the head of the queue, as many as the batch and the KV cache hold, and begin the prefill."""
        members = self.waiting[: self.batch_size]
        while self.blocks(members) > self.kv_blocks:
            members.pop()
        self.waiting = self.waiting[len(members) :]
        self.batch = members
        for job in members:
            job.was_scheduled(now)
        self.steps_done = 0
        self.begin_step(now)

    def end_step(self, now: float) -> None:
        """Every member that has tokens left emits one."""
        self.steps_done += 1
        for job in self.batch:
            if self.steps_done > job.output_tokens:
                continue
            if job.given_up:
                job.unheard.append(now)
                continue
            job.emit(now)
            if job.generated == 1:
                job.end_prefill(now)
            if job.generated == job.output_tokens:
                job.finished_s = now
                self.on_finish(job)

    def begin_step(self, now: float) -> None:
        """Begin the padded prefill, or a decode step in which every member has a row."""
        rows = len(self.batch)
        prompt = longest_prompt(self.batch)
        if self.steps_done == 0:
            decodes = 0
            prefill_tokens = rows * prompt
            context = rows * prompt
            pairs = rows * chunk_pairs(prompt, 0)
            duration_s = self.step_time.mixed(0, 0, [(prompt, 0)] * rows)
        else:
            decodes = sum(self.steps_done < job.output_tokens for job in self.batch)
            prefill_tokens = 0
            context = pairs = rows * (prompt + self.steps_done)
            duration_s = self.step_time.mixed(rows, context, [])
        step = Step(
            replica=self.index,
            start_s=now,
            duration_s=duration_s,
            sequences=rows,
            decodes=decodes,
            prefill_tokens=prefill_tokens,
            context=context,
            pairs=pairs,
            kv_blocks=self.blocks(self.batch),
            waiting=len(self.waiting),
            preempted=0,
            emitted=0 if prefill_tokens else decodes,
        )
        self.steps.append(step)
        self.boundary_s = now + duration_s


def longest_prompt(members: list[Job]) -> int:
    """Return the tokens of the longest prompt."""
    return max((job.input_tokens for job in members), default=0)


def longest_output(members: list[Job]) -> int:
    """Return the tokens of the longest output."""
    return max((job.output_tokens for job in members), default=0)
