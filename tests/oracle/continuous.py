"""Continuous batching, one step at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import ceil, inf, isnan

from servesim.cost.speculation import Speculation
from servesim.engine.continuous import PrefillPolicy
from servesim.engine.queue_order.order import Fcfs, QueueOrder
from servesim.engine.token_draws import TokenDraws
from servesim.streams import Streams
from tests.costs import AffineStepTime
from tests.oracle.job import Draft, Job
from tests.oracle.orders import order_of
from tests.oracle.pool import Content, Pool
from tests.oracle.step import Step, chunk_pairs

FCFS = Fcfs()


@cache
def _draws(rates: tuple[float, ...]) -> TokenDraws:
    return TokenDraws(rates, Streams(0).stream("speculation"))


def steps_of(rates: tuple[float, ...], number: int, tokens: int) -> int:
    """Return the steps in which a request gets so many tokens: all that both have in common."""
    return _draws(rates).steps(number, tokens)


class Continuous:
    """One replica: a queue, the running requests in the order of admission, and the step under way.

    ``boundary_s`` is when the step under way ends, or when an idle replica wakes; infinite: it sleeps.
    """

    def __init__(
        self,
        index: int,
        step_time: AffineStepTime,
        on_finish: Callable[[Job], None],
        *,
        kv_blocks: int,
        block_size: int,
        max_num_seqs: int,
        max_num_batched_tokens: int,
        enable_chunked_prefill: bool = True,
        enable_prefix_caching: bool = True,
        queue_order: QueueOrder = FCFS,
        prefill_policy: PrefillPolicy = "stall_free",
        step_target_s: float | None = None,
        speculation: Speculation | None = None,
        swap_blocks: int = 0,
        swap_block_s: float = 0.0,
    ) -> None:
        self.index = index
        self.step_time = step_time
        self.on_finish = on_finish
        self.kv_blocks = kv_blocks
        self.block_size = block_size
        self.max_num_seqs = max_num_seqs
        self.max_num_batched_tokens = max_num_batched_tokens
        self.enable_chunked_prefill = enable_chunked_prefill
        self.enable_prefix_caching = enable_prefix_caching
        self.step_target_s = step_target_s
        self.speculation = speculation
        self.swap_blocks = swap_blocks
        """KV blocks that the host has room for; a copy of one lasts ``swap_block_s``."""
        self.swap_block_s = swap_block_s

        self.prefill_policy = prefill_policy
        if prefill_policy != "stall_free":
            self.max_num_seqs = min(max_num_seqs, max_num_batched_tokens)
        self.closed = False
        """Whether a batch is under way that nobody may join."""

        self.barred = inf
        """The best class thrown out before this step: none such is admitted in it."""

        self.order = order_of(queue_order)
        self.boundary_s = inf
        self.pool = Pool(kv_blocks)
        self.waiting: list[Job] = []
        self.running: list[Job] = []
        self.scheduled: list[tuple[Job, int]] = []
        self.leaving: list[Job] = []
        """Those given up during the step under way, whose blocks are freed when it ends."""
        self.steps: list[Step] = []
        self.preempted = 0
        """Preemptions since the last step began."""
        self.copied = 0
        """Blocks copied between GPU and host since then."""
        self.swaps: list[tuple[int, int]] = []
        """Blocks copied out and back, of each request that went to the host or came from there."""

    @property
    def free(self) -> int:
        """Blocks that no request holds."""
        return self.pool.free

    @property
    def computing(self) -> bool:
        """Whether a step is under way."""
        return bool(self.scheduled)

    def arrive(self, job: Job, at: float) -> None:
        """Queue a request; an idle replica wakes at ``at``."""
        self.order.arrived(job, self.waiting)
        self.waiting.append(job)
        job.replica = self.index
        self.wake(at)

    def wake(self, at: float) -> None:
        """Wake at ``at``, unless a step is under way or it wakes sooner."""
        if not self.scheduled:
            self.boundary_s = min(self.boundary_s, at)

    def boundary(self, now: float) -> None:
        """End the step under way and begin the next."""
        self.end_step(now)
        self.begin_step(now)

    # ---- the end of a step

    def end_step(self, now: float) -> None:
        """Every scheduled request has computed its tokens; who reached its target emits one."""
        for job in self.leaving:
            self.let_go(job, now)
        self.leaving = []
        for job, tokens in self.scheduled:
            if job.given_up:
                continue
            if job.draft is not None:
                self.verified(job, job.draft, now)
                continue
            job.computed += tokens
            if job.computed == self.target(job):
                self.reached_target(job, now)
        self.scheduled = []

    def let_go(self, job: Job, now: float) -> None:
        """End a request that was given up in the step that ends, and free its blocks."""
        if job in self.running:
            if job.draft is None:
                job.computed += dict(self.scheduled).get(job, 0)
            elif job in dict(self.scheduled):
                job.draft.done += 1
                job.computed = job.draft.whole
            if job.streaming and job in dict(self.scheduled):
                job.unheard.append(now)
                self.order.decoded(job)
            self.running.remove(job)
            self.fill(job)
        self.pool.give_back(job.blocks)
        self.forget_own(job)
        job.blocks = []

    def give_up(self, job: Job, now: float) -> None:
        """Take a waiting request out of the queue; a running one stays to the end of the step under way."""
        if job in self.running:
            self.leaving.append(job)
        if job in self.waiting:
            self.waiting.remove(job)
            self.order.gone(job, self.waiting)
            self.wake(now)

    def target(self, job: Job) -> int:
        """Return the tokens to compute before the next one is emitted."""
        return job.input_tokens + job.generated

    def reached_target(self, job: Job, now: float) -> None:
        """Emit a token; the last one ends the request."""
        if job.streaming:
            self.order.decoded(job)
        job.emit(now)
        if isnan(job.prefilled_s):
            job.end_prefill(now)
        if job.generated == job.output_tokens:
            self.running.remove(job)
            self.finish(job, now)
        elif self.speculation is not None:
            steps = steps_of(self.speculation.rates, job.id, job.output_tokens - 1)
            tokens = job.output_tokens - job.generated
            job.draft = Draft(job.computed, tokens, ceil(tokens * steps / (job.output_tokens - 1)))

    def verified(self, job: Job, draft: Draft, now: float) -> None:
        """A draft has been verified: what is accepted leaves in one piece."""
        draft.done += 1
        accepted = draft.whole - job.computed
        job.computed = draft.whole
        job.emit(now, accepted)
        if draft.done == draft.steps:
            assert job.generated == job.output_tokens
            self.running.remove(job)
            self.finish(job, now)

    def finish(self, job: Job, now: float) -> None:
        """End a request and free its blocks; nobody finds what nobody else can ask for."""
        self.fill(job)
        self.pool.give_back(job.blocks)
        self.forget_own(job)
        job.blocks = []
        job.finished_s = now
        self.on_finish(job)

    # ---- the beginning of a step

    def begin_step(self, now: float) -> None:
        """Put a step together; where everything was preempted and nothing scheduled, look once more."""
        if self.schedule(now) and not self.scheduled:
            self.schedule(now)
        self.boundary_s = now + self.compute(now) if self.scheduled else inf

    def schedule(self, now: float) -> bool:
        """Schedule the running requests, then waiting ones; return whether any was preempted."""
        if self.prefill_policy != "stall_free":
            return self.schedule_one_phase(now)
        self.make_way(now)
        preempted = self.make_room(now)
        preempted |= self.serve(list(self.running), now)
        if not preempted:
            self.admit(self.budget, now)
        return preempted

    def schedule_one_phase(self, now: float) -> bool:
        """Schedule prompts alone, or else decodes alone; return whether any was preempted."""
        self.closed &= bool(self.running)
        preempted = self.serve([job for job in self.running if not job.streaming], now)
        if not (preempted or self.closed):
            self.admit(self.budget, now)
        if self.scheduled:
            return preempted
        preempted |= self.make_room(now)
        preempted |= self.serve(list(self.running), now)
        self.closed = bool(self.scheduled) and self.prefill_policy == "decode_first"
        return preempted

    @property
    def budget(self) -> int:
        """The tokens that the step has room for beside those scheduled."""
        return self.max_num_batched_tokens - sum(tokens for _, tokens in self.scheduled)

    def serve(self, jobs: list[Job], now: float) -> bool:
        """Schedule running requests, and preempt for them; return whether any was preempted."""
        preempted = False
        for job in jobs:
            if self.budget == 0 or job not in self.running:
                break
            tokens = self.timely(job, job.computed, min(self.wanted(job), self.budget))
            if tokens == 0:
                break
            while job in self.running and self.blocks_needed(job, tokens) > self.free:
                self.preempt(self.order.victim(self.running), now)
                preempted = True
            if job in self.running:
                self.take(job, tokens, now)
        return preempted

    def timely(self, job: Job, computed: int, most: int) -> int:
        """Return how many tokens of a prompt, at most ``most``, keep the step within its target."""
        if self.step_target_s is None or job.streaming:
            return most
        decodes = [1 + other.computed for other in self.running if other.streaming]
        chunks = [(tokens, other.computed) for other, tokens in self.scheduled if not other.streaming]
        tokens = 0 if decodes or chunks else min(1, most)
        while tokens < most:
            more = [*chunks, (tokens + 1, computed)]
            if self.step_time.mixed(len(decodes), sum(decodes), more) > self.step_target_s:
                break
            tokens += 1
        return tokens

    def wanted(self, job: Job) -> int:
        """Return the tokens that a running request would compute, had the step room for all."""
        return self.target(job) - job.computed if job.draft is None else self.queries

    def make_way(self, now: float) -> None:
        """Throw out who is of a worse class than the head of the queue, as long as that does not fit."""
        self.barred = inf
        if not (self.order.throws_out and self.waiting):
            return
        head = self.order.head(self.waiting)
        while not self.would_fit(head):
            victim = self.order.victim(self.running)
            if victim.origin.priority <= head.origin.priority:
                break
            self.preempt(victim, now)
            self.barred = min(self.barred, victim.origin.priority)

    def would_fit(self, job: Job) -> bool:
        """Return whether a waiting request can be admitted beside all that run."""
        cached = self.look_up(job)
        computed = max(len(cached) * self.block_size, job.swapped)
        missing = self.target(job) - computed
        budget = self.max_num_batched_tokens
        for other in self.running:
            budget -= min(self.wanted(other), budget)
        if budget == 0 or len(self.running) >= self.max_num_seqs:
            return False
        if missing > budget and not self.enable_chunked_prefill:
            return False
        blocks = ceil((computed + min(missing, budget)) / self.block_size) - len(cached)
        return blocks + self.pool.idle(cached) + self.blocks_of_step() <= self.free

    def make_room(self, now: float) -> bool:
        """Preempt until all the others have room for the step; return whether any was preempted.

        Only where it is not always the last one that goes: then it does not go while others are served.
        """
        preempted = False
        while self.order.chooses_victims and self.blocks_of_step() > self.free:
            self.preempt(self.order.victim(self.running), now)
            preempted = True
        return preempted

    def blocks_of_step(self) -> int:
        """Return the blocks that the running requests need for a step of them."""
        budget, blocks = self.max_num_batched_tokens, 0
        for job in self.running:
            tokens = self.timely(job, job.computed, min(self.wanted(job), budget))
            budget -= tokens
            blocks += self.blocks_needed(job, tokens)
        return blocks

    def admit(self, budget: int, now: float) -> None:
        """Admit from the head of the queue, as long as it can be, and behind whole prompts alone."""
        chunks = dict(self.scheduled)
        if any(not job.streaming and self.wanted(job) > chunks.get(job, 0) for job in self.running):
            return
        while self.waiting and budget > 0 and len(self.running) < self.max_num_seqs:
            job = self.order.head(self.waiting)
            if job.origin.priority >= self.barred:
                break
            cached = self.look_up(job)
            missing = self.target(job) - max(len(cached) * self.block_size, job.swapped)
            if missing > budget and not self.enable_chunked_prefill:
                break
            tokens = self.timely(job, self.target(job) - missing, min(missing, budget))
            if tokens == 0 or not self.has_room(job, cached, tokens):
                break
            self.waiting.remove(job)
            self.order.admitted(job)
            self.running.append(job)
            self.reuse(job, cached)
            self.take(job, tokens, now)
            budget -= tokens
            if tokens < missing:
                break

    def look_up(self, job: Job) -> list[int]:
        """Return the blocks of a waiting request that are still cached, the last token's never among them."""
        if not self.enable_prefix_caching:
            return []
        return self.pool.find(self.contents(job, (self.target(job) - 1) // self.block_size))

    def contents(self, job: Job, blocks: int) -> list[Content]:
        """Return what is in the first blocks of a request."""
        return [job.content(place, self.block_size) for place in range(blocks)]

    def fill(self, job: Job, more: int = 0) -> None:
        """Let others find the full blocks of what is computed, ``more`` tokens under way included."""
        if self.enable_prefix_caching:
            self.pool.fill(self.contents(job, (job.computed + more) // self.block_size), job.blocks)

    def forget_own(self, job: Job) -> None:
        """Forget what only this request would ask for."""
        own = [block for block, (key, _) in self.pool.content.items() if key == job.own_key]
        for block in own:
            self.pool.forget(block)

    def reuse(self, job: Job, cached: list[int]) -> None:
        """Let a request begin behind its cached blocks."""
        self.pool.reuse(cached)
        job.blocks = list(cached)
        job.computed = len(cached) * self.block_size
        job.cached_tokens += job.computed
        if job.swapped:
            self.swap_in(job)

    def swap_in(self, job: Job) -> None:
        """Copy back what the host holds of a request and the GPU does not."""
        missing = max(ceil(job.swapped / self.block_size) - len(job.blocks), 0)
        job.computed = max(job.computed, job.swapped)
        job.swapped = 0
        self.copied += missing
        self.swaps.append((0, missing))

    def swap_out(self, job: Job) -> None:
        """Copy what is computed of a request to the host, where that has room for it."""
        blocks = ceil(job.computed / self.block_size)
        held = sum(ceil(other.swapped / self.block_size) for other in self.waiting)
        if held + blocks <= self.swap_blocks:
            job.swapped = job.computed
            self.copied += blocks
            self.swaps.append((blocks, 0))

    def has_room(self, job: Job, cached: list[int], tokens: int) -> bool:
        """Return whether ``tokens`` more have room: cached blocks that nobody holds are free ones."""
        computed = max(len(cached) * self.block_size, job.swapped)
        blocks = ceil((computed + tokens) / self.block_size) - len(cached)
        return blocks + self.pool.idle(cached) <= self.free

    def blocks_needed(self, job: Job, tokens: int) -> int:
        """Return the blocks still to allocate before ``job`` can compute ``tokens`` more.

        A draft has room for all its slots, but not for more than the request comes to in the end.
        """
        reach = job.computed + tokens
        if job.draft is not None and self.speculation is not None:
            last = job.input_tokens + job.output_tokens - 1
            reach = min(job.computed + self.speculation.slots, last)
        return ceil(reach / self.block_size) - len(job.blocks)

    @property
    def queries(self) -> int:
        """Tokens that a decode has in a step."""
        return 1 if self.speculation is None else 1 + self.speculation.num_speculative_tokens

    def take(self, job: Job, tokens: int, now: float) -> None:
        """Allocate the blocks of ``tokens`` more tokens of ``job`` and make them part of the step."""
        job.blocks += self.pool.allocate(self.blocks_needed(job, tokens))
        if not job.streaming:
            self.fill(job, tokens)
        job.was_scheduled(now)
        self.scheduled.append((job, tokens))

    def preempt(self, job: Job, now: float) -> None:
        """Take the blocks of a running request back, and put it at the head of the queue."""
        self.running.remove(job)
        self.swap_out(job)
        self.waiting.insert(0, job)
        self.fill(job)
        self.pool.give_back(job.blocks)
        self.preempted += 1
        job.was_preempted(now)

    def compute(self, now: float) -> float:
        """Return how long the scheduled step takes, and write it down."""
        decodes = [job for job, _ in self.scheduled if job.streaming]
        chunks = [(tokens, job.computed) for job, tokens in self.scheduled if not job.streaming]
        decode_context = sum(1 + (job.draft.exact if job.draft else job.computed) for job in decodes)
        read = decode_context + (self.queries - 1) * len(decodes)
        duration_s = self.step_time.mixed(len(decodes), decode_context, chunks)
        duration_s += self.copied * self.swap_block_s
        self.copied = 0
        step = Step(
            replica=self.index,
            start_s=now,
            duration_s=duration_s,
            sequences=len(self.scheduled),
            decodes=len(decodes),
            prefill_tokens=sum(new for new, _ in chunks),
            context=read + sum(new + cached for new, cached in chunks),
            pairs=self.queries * read + sum(chunk_pairs(new, cached) for new, cached in chunks),
            kv_blocks=self.kv_blocks - self.free,
            waiting=self.queue_length(),
            preempted=self.preempted,
            emitted=sum(job.draft.tokens / job.draft.steps if job.draft else 1 for job in decodes),
        )
        self.steps.append(step)
        self.preempted = 0
        return duration_s

    def queue_length(self) -> int:
        """Return how many requests wait here."""
        return len(self.waiting)
