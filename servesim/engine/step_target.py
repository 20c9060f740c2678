"""The engine whose steps with prompts last no longer than a target."""

from __future__ import annotations

from collections.abc import Sequence

from servesim.engine.continuous_engine import ContinuousEngine
from servesim.engine.queue_order.order import Queue
from servesim.engine.setup import Setup
from servesim.workload.request import Request

#: Prompts of a step: of each its new tokens and those whose KV is there.
Chunks = Sequence[tuple[int, int]]


class TargetedEngine(ContinuousEngine):
    """One replica that chooses the token budget of each step by how long the step takes.

    Sarathi-Serve takes the largest budget whose step keeps the limit on the time between tokens, profiled
    once for all steps (Agrawal et al., OSDI 2024, section 4.3). Here it is found for each step, beside the
    decodes that it has: prompts get tokens in the order of any engine, each as many as the step has time for,
    and the one that is cut short ends it. Where not even one token has time, prompts wait until decodes have
    ended; with nothing to decode one token is computed, however long it takes. Copies of swapped KV, which a
    step waits for before it begins, come on top.

    Step times do not decrease in tokens, so the most tokens are found by halving. Nor do they in context: a
    prompt that has no time now has none until a decode ends, and leaps are as long as without a target. Each
    step is looked at only where a prompt may come in meanwhile: with less of it in the cache it would have
    time, or there would be blocks for fewer tokens.
    """

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        assert setup.scheduler.step_target_s is not None
        self._target_s = setup.scheduler.step_target_s
        self._most = self.token_budget
        #: whether the step has no time for more prompts
        self._full = False
        #: the longest chunk of a prompt that waits and might come in before a decode ends
        self._longest: tuple[int, int] | None = None

    def full_step(self) -> tuple[float, int]:
        """Return the seconds of a step filled up with one prompt beside the decodes, and its share of it."""
        tokens = max(self._room(max(self._most - self.decodes.count, 1), 0, ()), 1)
        return self._lasts_s([(tokens, 0)]), tokens

    def _admissible(self, queue: Queue, request: Request) -> bool:
        """Say whether the newest of a queue might be admitted before a decode ends.

        It may not be, after all; but where this says no, it surely is not.
        """
        if self.partial is not None:
            return False
        if self._tenants is not None or queue[0] is not request or self._has_time(self._longest_of(request)):
            return super()._admissible(queue, request)
        slots = self.max_num_seqs - len(self.running)
        return slots > 0 and self._budget() > 0 and self._may_fit(request, ())

    # ---- planning ---------------------------------------------------------------------------------

    def _serve_running(self, now: float) -> int:
        """Serve who runs as any engine does, in a step that has time for anything yet."""
        self._full, self._longest = False, None
        return super()._serve_running(now)

    def _schedule_next(self, request: Request) -> bool:
        """Schedule as much of a partly computed prompt as the step has time for, perhaps nothing."""
        missing = request.missing_tokens()
        tokens = self._room(min(missing, self._budget()), request.computed, ())
        self._full = tokens < missing
        if not tokens:
            return True
        self.token_budget = self.decodes.count + tokens
        scheduled = super()._schedule_next(request)
        self.token_budget = self._most
        return scheduled

    def _admit_from(self, queue: Queue, now: float) -> None:
        """Admit one request after the other, each under the budget that the step has time for."""
        taken = self.decodes.count + sum(tokens for _, tokens in self._chunks)
        while queue and not self._full and len(self.running) < self.max_num_seqs and taken < self._most:
            request, length = queue[0], len(queue)
            wanted, cached = self._sought(request, self._most - taken)
            tokens = self._room(wanted, cached, self._so_far())
            if tokens:
                self.token_budget = taken + tokens
                super()._admit_from(queue, now)
                self.token_budget = self._most
            if len(queue) == length:
                if self._may_fit(request, self._so_far()):
                    self._longest = self._longest_of(request)
                return
            taken += tokens
            self._full = self.partial is not None

    def _plan_leap(self, now: float) -> float:
        """Plan decode steps up to the next event, or a single one where a prompt may come in behind it."""
        end_s = super()._plan_leap(now)
        # A prompt with time for all of it throughout waits for blocks, and these do not come free.
        waits = self._longest is None or self._has_time(self._longest)
        return end_s if waits else self._leap.cut(now) or end_s

    # ---- settling ---------------------------------------------------------------------------------

    def _chunk_of(self, request: Request) -> int | None:
        """Return how many tokens of a running request the step prefills: 0 of a prompt that had no time."""
        tokens = super()._chunk_of(request)
        return 0 if tokens is None and request is self.partial else tokens

    def _let_go(self, request: Request) -> None:
        """Free the blocks of a request that was given up; one that had no time has an empty chunk for it."""
        if request is self.partial and not self._chunk_of(request):
            self._chunks.append((request, 0))
        super()._let_go(request)

    # ---- time -------------------------------------------------------------------------------------

    def _has_time(self, chunk: tuple[int, int]) -> bool:
        """Say whether a chunk has time beside the decodes up to the end of the leap under way."""
        count, grown = self.decodes.count, self._leap.steps - 1
        context = self.decodes.context() + count * grown
        return self.step_time.mixed(count, context, [chunk]) <= self._target_s

    def _may_fit(self, request: Request, chunks: Chunks) -> bool:
        """Say whether a token of a waiting prompt may have time and blocks, however much of it is found."""
        return self.kv.least(request, 1) <= self.kv.free and self._room(1, 0, chunks) > 0

    def _longest_of(self, request: Request) -> tuple[int, int]:
        """Return the chunk of a waiting prompt than which it has none that lasts longer."""
        _, cached = self._sought(request, self._most)
        return min(request.input_tokens + request.generated, self._most), cached

    def _sought(self, request: Request, most: int) -> tuple[int, int]:
        """Return the tokens of a waiting prompt to be computed, at most ``most``, and those that it finds."""
        found = request.may_be_cached and self.kv.find(request)
        wanted, cached = min(request.missing_tokens(), most), request.computed
        if found:
            request.computed = request.blocks = 0
        return wanted, cached

    def _so_far(self) -> Chunks:
        """Return the chunks of the step so far."""
        return [(tokens, request.computed) for request, tokens in self._chunks]

    def _room(self, most: int, cached: int, chunks: Chunks) -> int:
        """Return how many tokens of a prompt, at most ``most``, the step has time for beside other chunks."""
        low, high = 0, most + 1
        tokens = most
        while high - low > 1:
            if self._lasts_s([*chunks, (tokens, cached)]) <= self._target_s:
                low = tokens
            else:
                high = tokens
            tokens = (low + high) // 2
        return low if low or chunks or self.decodes.count else 1

    def _lasts_s(self, chunks: Chunks) -> float:
        """Return how long a step of the decodes and of these chunks takes (seconds)."""
        return self.step_time.mixed(self.decodes.count, self.decodes.context(), chunks)
