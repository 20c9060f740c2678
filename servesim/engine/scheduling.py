"""Who is in the next step of a replica: waiting and running requests, and the KV blocks between them."""

from __future__ import annotations

from servesim.engine.clock import StalledError
from servesim.engine.kv_cache import KvCache
from servesim.engine.queue_order.fair_queue import FairQueue
from servesim.engine.queue_order.order import Queue
from servesim.engine.setup import Setup
from servesim.engine.speculative_decodes import SpeculativeDecodes
from servesim.workload.request import Request


class Scheduling:
    """The scheduler of one replica, as vLLM V1's (vllm/v1/core/sched/scheduler.py, ``schedule``).

    Running requests are served first, each decode with its tokens and the one partly computed prompt with
    its next chunk; who does not find its blocks free costs another its place. Then waiting ones are admitted
    while slots, the token budget and blocks last. How long the step takes is the engine's matter.
    """

    def __init__(self, setup: Setup) -> None:
        scheduler = setup.scheduler
        self.replica = setup.replica
        self.max_num_seqs = scheduler.max_num_seqs
        self.token_budget = scheduler.max_num_batched_tokens
        self.chunked = scheduler.enable_chunked_prefill
        self.kv = KvCache(
            setup.kv_blocks,
            scheduler.block_size,
            caches=scheduler.enable_prefix_caching,
            shares=setup.shares,
            in_turn=scheduler.queue_order.in_turn,
            swap=setup.swap,
        )
        #: the running ones in order of admission; ``popitem`` takes out the one to be preempted
        self.waiting, self.running, self.decodes = scheduler.queue_order.start(scheduler.block_size)
        self._tenants = self.waiting if isinstance(self.waiting, FairQueue) else None
        self._queries = scheduler.queries
        #: tokens of a step's budget that each decode takes
        self._each_takes = scheduler.queries
        if setup.draws is not None and scheduler.speculation is not None:
            self.decodes = SpeculativeDecodes(scheduler.block_size, setup.draws, scheduler.speculation.slots)
        #: the one running request whose prompt is only partly computed; always the last of `running`
        self.partial: Request | None = None
        #: the prompts of the step, each with the tokens of it
        self._chunks: list[tuple[Request, int]] = []
        self._preempted = 0
        self._futile = 0  # preemptions since the last token
        self._most_futile = 1000 + 10 * self.max_num_seqs
        #: whether requests also come in otherwise than through the queue
        self._lands = False

    def _admissible(self, queue: Queue, request: Request) -> bool:
        """Say whether the newest of a queue is its head and could be admitted beside the decodes."""
        budget = self.token_budget - self.decodes.count * self._each_takes
        if budget <= 0 or len(self.running) >= self.max_num_seqs:
            return False
        if self._tenants is not None and queue is self.waiting:
            return self._tenants.begins(request)
        if queue[0] is not request:
            return False
        kv = self.kv
        reuses = request.may_be_cached and kv.find(request)
        missing = request.input_tokens + request.generated - request.computed
        blocks = kv.short(request, missing if missing < budget else budget)
        if reuses:
            request.computed = request.blocks = 0
        return blocks <= kv.free and (self.chunked or missing <= budget)

    def _budget(self) -> int:
        """Return how many tokens of a step the decodes leave for prompts."""
        return self.token_budget - self.decodes.count * self._each_takes

    def _serve_running(self, now: float) -> int:
        """Give each running request its token or chunk, and the blocks; return how many were preempted."""
        decodes, kv, preempted = self.decodes, self.kv, 0
        self._chunks = []
        while (blocks := decodes.blocks()) > kv.free:
            self._preempt_one(now)
            preempted += 1
        kv.free -= blocks
        while self.partial is not None and not self._schedule_next(self.partial):
            kv.free += blocks
            self._preempt_one(now)
            preempted += 1
            blocks = decodes.blocks()
            kv.free -= blocks
        self._preempted += preempted
        return preempted

    def _schedule_next(self, request: Request) -> bool:
        """Schedule the next chunk of a partly computed prompt, if it fits."""
        missing = request.missing_tokens()
        tokens = min(missing, self._budget())
        if not self._schedule(request, tokens):
            return False
        if tokens == missing:
            self.kv.name(request)
        return True

    def _admit(self, now: float) -> None:
        """Admit waiting requests in order while slots, token budget and blocks last."""
        self._admit_from(self.waiting, now)

    def _admit_from(self, queue: Queue, now: float) -> None:
        """Admit requests of one queue, from its head on, beside the decodes and the chunks of the step."""
        running, kv = self.running, self.kv
        budget = self.token_budget - self.decodes.count * self._each_takes
        for _, tokens in self._chunks:
            budget -= tokens
        while queue and budget > 0 and len(running) < self.max_num_seqs:
            request = queue[0]
            reuses = request.may_be_cached
            if reuses:
                if kv.least(request, budget) > kv.free:
                    return
                reuses = kv.find(request)
                if reuses and self._loads(request, now):
                    queue.popleft()
                    continue
            missing = tokens = request.input_tokens + request.generated - request.computed
            if missing > budget:
                tokens = budget if self.chunked else 0
            if not tokens or not self._schedule(request, tokens):
                if reuses:
                    request.computed = request.blocks = 0
                return
            queue.popleft()
            request.begin(now)
            if reuses:
                kv.hold(request, whole=tokens == missing)
            running[request] = None
            self.partial = request if tokens < missing else None
            budget -= tokens

    def _loads(self, request: Request, now: float) -> bool:
        """Say whether a waiting request leaves the queue to have KV loaded from elsewhere."""
        return False

    def _schedule(self, request: Request, tokens: int) -> bool:
        """Schedule a chunk and take the blocks for it, or do neither where they are not free."""
        kv = self.kv
        blocks = -(-(request.computed + tokens) // kv.block_size) - request.blocks
        if blocks > kv.free:
            return False
        kv.free -= blocks
        request.blocks += blocks
        self._chunks.append((request, tokens))
        return True

    def _preempt_one(self, now: float) -> Request:
        """Throw a running request out, its blocks given back, queue it anew, and return it."""
        request, _ = self.running.popitem()
        if request is self.partial:
            self.partial = None
        else:
            spare = self.decodes.leave(request)
            if spare:
                self.kv.give_back(spare)
        self.kv.lose(request)
        request.preempt(now)
        self.waiting.appendleft(request)
        self._futile += 1
        if self._futile > self._most_futile:
            raise StalledError(f"replica {self.replica} preempts without end at {now:.6f} s")
        return request

    def _let_go(self, request: Request) -> None:
        """Free the blocks of a running request that was given up during the steps that have just ended."""
        del self.running[request]
        tokens = self._chunk_of(request)
        if tokens is None:
            tokens = 0
            self.kv.give_back(self.decodes.leave(request))
        else:
            self._chunks.remove((request, tokens))
            if request is self.partial:
                self.partial = None
        self.kv.leave(request, request.computed + tokens)

    def _chunk_of(self, request: Request) -> int | None:
        """Return how many tokens of a running request the step under way prefills; None: it decodes."""
        return next((tokens for other, tokens in self._chunks if other is request), None)
