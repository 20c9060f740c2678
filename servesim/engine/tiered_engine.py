"""Continuous batching with KV tiers behind the GPUs: what they hold of a prompt is loaded, not computed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable

from servesim.engine.continuous_engine import ContinuousEngine
from servesim.engine.queue_order.order import Queue
from servesim.engine.setup import Setup
from servesim.engine.tiered_kv_cache import TieredKvCache
from servesim.engine.tiers import Part, Tiers
from servesim.workload.request import Request


class TieredEngine(ContinuousEngine):
    """One replica whose prefix cache goes on in other memories.

    Where the head of the queue is found in a tier beyond what the GPU has of it, room for its whole prompt is
    taken and it leaves the queue; when the copies have landed it is scheduled before those that wait, behind
    all that was found. Others are admitted and run meanwhile, as in vLLM's ``WAITING_FOR_REMOTE_KVS``
    (vllm/v1/core/sched/scheduler.py). Until there is room, it and those behind it wait.

    Args:
        tiers: what lies behind the GPUs of this replica.
        least_tokens: tokens that are worth a load.
        landing: called with each request to be loaded and with the time at which it will have been, for
            :meth:`land` to be called then.
    """

    kv: TieredKvCache

    def __init__(
        self,
        setup: Setup,
        tiers: Tiers,
        least_tokens: int,
        landing: Callable[[Request, float], None],
    ) -> None:
        super().__init__(setup)
        self._lands = True
        self.tiers = tiers
        #: who is being loaded, and whether anybody still waits for it
        self.loading: dict[Request, bool] = {}
        self.landed: deque[Request] = deque()
        self._least_tokens = least_tokens
        self._landing = landing
        self._held_back: Request | None = None
        self._now = 0.0
        self.kv = TieredKvCache(
            setup.kv_blocks,
            setup.scheduler.block_size,
            caches=setup.scheduler.enable_prefix_caching,
            swap=setup.swap,
            on_loss=self._write,
            on_rewrite=tiers.forget,
        )

    # ---- what the event loop calls ----------------------------------------------------------------

    def submit(self, request: Request, now: float) -> float | None:
        """Queue a request; return when the next boundary should be, if it changes."""
        self._now = now
        return super().submit(request, now)

    def land(self, request: Request, now: float) -> float | None:
        """Have all of a request that was to be loaded; return when the next boundary should be, if sooner."""
        wanted = self.loading.pop(request)
        self.kv.name_loaded(request)
        if not wanted:
            return self.decline(request, now)
        self.landed.append(request)
        if not self._leap.steps:
            return now
        could_join = self._leap.steps > 1 and len(self.running) < self.max_num_seqs
        return self._leap.cut(now) if could_join else None

    def abort(self, request: Request, now: float) -> float | None:
        """Give a request up; one that is being loaded keeps its blocks until that has landed, as in vLLM."""
        if request in self.loading:
            self.loading[request] = False
            return None
        if request in self.landed:
            self.landed.remove(request)
            return self.decline(request, now)
        return super().abort(request, now)

    def _let_go(self, request: Request) -> None:
        """Free the blocks of a request that runs, or the room of one that never has."""
        if request in self.running:
            super()._let_go(request)
            return
        self.kv.give_back(request.blocks - request.computed // self.kv.block_size)
        self.kv.leave(request, request.computed)

    def prompt_tokens_ahead(self) -> int:
        """Return the tokens to be computed before a request that is queued now, of those loaded, too."""
        loaded = (*(request for request, wanted in self.loading.items() if wanted), *self.landed)
        return super().prompt_tokens_ahead() + sum(request.missing_tokens() for request in loaded)

    def cached_tokens_of(self, request: Request, now: float) -> int:
        """Return how many tokens of a prompt this replica would find on its GPUs and in its tiers now."""
        self._lose_in_leap(self._leap.begun(now))
        self._now = now
        cached = super().cached_tokens_of(request, now)
        parts = self.tiers.look(*self.kv.beyond(request, cached), now) if request.may_be_cached else []
        return cached + self.kv.block_size * sum(part.high - part.low for part in parts)

    # ---- planning ---------------------------------------------------------------------------------

    def _plan(self, now: float) -> float | None:
        """Plan as any engine does; what the new blocks had in them is written to the tiers from now on."""
        self._now = now
        due_s = super()._plan(now)
        self.kv.evict()
        return due_s

    def _lose_in_leap(self, steps: int) -> None:
        """Write what the first steps of the leap under way have taken, each at its beginning."""
        if not self.kv.may_lose:
            return
        for step in range(1, steps):
            self._now = self._leap.end_of(step)
            self.kv.evict(self.decodes.blocks_after(step))

    def _settle(self, now: float) -> None:
        self._lose_in_leap(self._leap.steps)
        super()._settle(now)

    def _admit(self, now: float) -> None:
        """Admit those that have been loaded, then the waiting."""
        self._admit_landed(now)
        if not self.landed:
            super()._admit(now)

    def _admit_landed(self, now: float) -> None:
        budget = self._budget() - sum(tokens for _, tokens in self._chunks)
        while self.landed and budget > 0 and len(self.running) < self.max_num_seqs:
            request = self.landed[0]
            missing = request.missing_tokens()
            tokens = min(missing, budget)
            if tokens < missing and not self.chunked:
                return
            self.landed.popleft()
            self._schedule(request, tokens)
            request.begin(now)
            if tokens == missing:
                self.kv.name(request)
            self.running[request] = None
            self.partial = request if tokens < missing else None
            budget -= tokens

    def _admissible(self, queue: Queue, request: Request) -> bool:
        """Say whether the newest of a queue could be admitted, or loaded, at the next boundary."""
        if super()._admissible(queue, request):
            return True
        if self._tenants is not None:  # a fair queue is not looked at between steps
            return False
        if queue[0] is not request or not request.may_be_cached or len(self.running) >= self.max_num_seqs:
            return False
        room = self.kv.find(request) and self._hit(request) and self._room(request) <= self.kv.free
        request.computed = request.blocks = 0
        return bool(room)

    def _hit(self, request: Request) -> list[Part]:
        """Return what is in the tiers of a request that has been looked for on the GPU, if it is enough."""
        if request.swapped:
            return []
        parts = self.tiers.look(*self.kv.beyond(request, request.computed), self._now)
        blocks = sum(part.high - part.low for part in parts)
        return parts if blocks * self.kv.block_size >= self._least_tokens else []

    def _room(self, request: Request) -> int:
        """Return the blocks that the whole of a request takes beyond those it shares."""
        return self.kv.short(request, request.missing_tokens())

    def _loads(self, request: Request, now: float) -> bool:
        """Let a waiting request be loaded, if tiers hold of it what the GPU does not and there is room."""
        self._held_back = None
        parts = self._hit(request)
        if not parts:
            return False
        room = self._room(request)
        if room > self.kv.free:
            self._held_back = request
            return False
        self.kv.free -= room
        request.blocks += room
        self.kv.hold(request, whole=False)
        tokens = self.kv.block_size * sum(part.high - part.low for part in parts)
        request.computed += tokens
        request.loaded_tokens += tokens
        self.loading[request] = True
        self._landing(request, self.tiers.load(parts, now))
        return True

    def _schedule(self, request: Request, tokens: int) -> bool:
        """Schedule as any engine does, but for a head of the queue that waits for room to be loaded."""
        return request is not self._held_back and super()._schedule(request, tokens)

    def _write(self, key: Hashable, low: int, high: int) -> None:
        """Write what the GPU loses to the tiers."""
        self.tiers.write(key, low, high, self._now)

    def _queue_length(self) -> int:
        return len(self.waiting) + len(self.loading) + len(self.landed)
