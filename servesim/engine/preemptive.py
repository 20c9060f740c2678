"""The engine in which a waiting request of a better class throws running ones of worse classes out."""

from __future__ import annotations

from math import inf

from servesim.engine.continuous_engine import ContinuousEngine
from servesim.engine.queue_order.order import Queue
from servesim.engine.queue_order.priority import RunningByClass
from servesim.engine.setup import Setup
from servesim.workload.request import Request


class PreemptiveEngine(ContinuousEngine):
    """One replica whose best class never waits for what worse ones hold.

    Before a step is put together, requests of classes worse than that of the head of the queue are thrown
    out, the worst class's last one first, until there are a place, tokens and blocks for it, or nobody is
    left to be thrown out; in that step nobody is admitted who is no better than those. A request is thrown
    out for better ones alone, so the best of a replica always go on.
    """

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.running: RunningByClass
        #: the best class that has been thrown out before this step
        self._barred: float = inf

    def _admissible(self, queue: Queue, request: Request) -> bool:
        overtakes = queue[0] is request and self._worse_run(request)
        return overtakes or super()._admissible(queue, request)

    def _plan(self, now: float) -> float | None:
        self._barred = inf
        if self.waiting:
            self._make_way(self.waiting[0], now)
        return super()._plan(now)

    def _make_way(self, request: Request, now: float) -> None:
        """Throw worse ones out until a request fits into the step."""
        while self._worse_run(request) and not self._will_fit(request):
            victim = self._preempt_one(now)
            self._preempted += 1
            self._barred = min(self._barred, victim.origin.priority)

    def _worse_run(self, request: Request) -> bool:
        return next(self.running.worse_than(request.origin.priority), None) is not None

    def _will_fit(self, request: Request) -> bool:
        """Say whether a waiting request can be admitted beside all that is running."""
        kv, budget, taken = self.kv, self._budget(), self.decodes.blocks()
        if self.partial is not None:
            tokens = min(self.partial.missing_tokens(), budget)
            budget -= tokens
            taken += kv.short(self.partial, tokens)
        if budget <= 0 or len(self.running) >= self.max_num_seqs:
            return False
        found = request.may_be_cached and kv.find(request)
        missing = request.missing_tokens()
        blocks = kv.short(request, min(missing, budget))
        if found:
            request.computed = request.blocks = 0
        return blocks + taken <= kv.free and (self.chunked or missing <= budget)

    def _schedule(self, request: Request, tokens: int) -> bool:
        if request.origin.priority >= self._barred and request not in self.running:
            return False
        return super()._schedule(request, tokens)
