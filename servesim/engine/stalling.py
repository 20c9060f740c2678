"""The engine that computes prompts in steps of their own, in which the decoding sequences stall."""

from __future__ import annotations

from collections import Counter
from math import nan

from servesim.engine.continuous_engine import ContinuousEngine
from servesim.engine.log import NOBODY, STALLED, pack_gap
from servesim.engine.queue_order.order import Queue
from servesim.engine.setup import Setup
from servesim.workload.request import Request


class StallingEngine(ContinuousEngine):
    """One replica that prefers one phase to the other, where an engine without stalls mixes them.

    While there are prompts that it may compute, its steps hold nothing else, and have the whole token budget
    for them. With ``prefill_first`` those are all that can be admitted; with ``decode_first`` those of the
    batch that is being made up: it is closed by its first decode step, and the next begins when all of it has
    ended.

    What a sequence has waited for prompts belongs to the gap before its next token. Sequences that have
    waited for the same steps are not told apart: the leap that follows says how many ``stalled`` ones it
    serves, and one row of gaps stands for all that have waited since the same moment. So a stall costs no
    more than what it admits.
    """

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        # a step of decodes alone must not pass the token budget either
        self.max_num_seqs = min(self.max_num_seqs, self.token_budget)
        self._each_takes = 0
        self._one_batch = setup.scheduler.prefill_policy == "decode_first"
        self._closed = False
        #: when the decodes had their last step before the prompts under way; NaN: just now
        self._stalled_s = nan
        #: when each sequence joined that has joined since
        self._joined: dict[Request, float] = {}
        #: (since when, how many) have waited for the leap under way
        self._waits: list[tuple[float, int]] = []

    def _admissible(self, queue: Queue, request: Request) -> bool:
        return not self._closed and super()._admissible(queue, request)

    def _plan(self, now: float) -> float | None:
        if self._closed and not self.running:
            self._closed = False
        preempted = self._serve_prompts(now)
        if self._chunks:
            if self._stalled_s != self._stalled_s:
                self._stalled_s = now
            return self._plan_mixed(now, 0, 0)
        preempted += self._serve_running(now)
        if self.decodes.count:
            self._closed = self._one_batch
            return self._plan_leap(now)
        return self._plan(now) if preempted else None

    def _serve_prompts(self, now: float) -> int:
        """Schedule the prompts that may be computed now; return how many requests were preempted for them."""
        self._chunks, preempted = [], 0
        while self.partial is not None and not self._schedule_next(self.partial):
            self._preempt_one(now)
            preempted += 1
        self._preempted += preempted
        if not preempted and not self._closed and self.waiting:
            self._admit_from(self.waiting, now)
        return preempted

    def _plan_leap(self, now: float) -> float:
        end_s = super()._plan_leap(now)
        if self._stalled_s == self._stalled_s:
            since = Counter(self._joined.values())
            since[self._stalled_s] += self.decodes.count - len(self._joined)
            self._waits = [(since_s, count) for since_s, count in since.items() if count and since_s < now]
            self._row[STALLED] = sum(count for _, count in self._waits)
            self._stalled_s = nan
            self._joined.clear()
        return end_s

    def _settle(self, now: float) -> None:
        end_s = self._leap.start_s + self._leap.first_s
        for since_s, count in self._waits:
            self._log_gap(pack_gap(NOBODY, end_s, end_s - since_s, count))
        self._waits.clear()
        super()._settle(now)

    def _let_go(self, request: Request) -> None:
        super()._let_go(request)
        self._joined.pop(request, None)

    def _prefilled(self, request: Request, now: float) -> None:
        super()._prefilled(request, now)
        if request in self.running:
            self._joined[request] = now

    def _preempt_one(self, now: float) -> Request:
        """Preempt a request: what it waited before it lost its blocks is part of what that costs."""
        request = super()._preempt_one(now)
        joined_s = self._joined.pop(request, self._stalled_s)
        if request.generated and request.paused_s == now and joined_s < now:
            request.paused_s = joined_s
        return request
