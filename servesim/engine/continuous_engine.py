"""The engine of continuous batching, which leaps from scheduling event to scheduling event.

It is a state machine that knows nothing of the event loop around it: at each ``boundary`` it settles the
steps that have just ended and plans those that follow. A step with prefill chunks is planned alone; decode
steps are planned as one leap up to the next event that can change the batch.
"""

from __future__ import annotations

from math import inf

from servesim.engine.leap import Leap
from servesim.engine.log import DECODES, KV_BLOCKS_LAST, STEPS, pack_gap, pack_step
from servesim.engine.scheduling import Scheduling
from servesim.engine.setup import Setup
from servesim.workload.request import Request


class ContinuousEngine(Scheduling):
    """One replica: the requests of its schedule, and the steps under way."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.step_time = setup.step_time
        self._leap = Leap()
        self._row: list[float] = []
        #: requests given up during the steps under way, which hold their blocks until these have ended
        self._given_up: list[Request] = []
        self._log_step = setup.log.steps.frombytes
        self._log_gap = setup.log.gaps.frombytes
        self._finished = setup.finished

    # ---- what the event loop calls ----------------------------------------------------------------

    def submit(self, request: Request, now: float) -> float | None:
        """Queue a request; return when the next boundary should be at the latest, if that is to change.

        An idle engine wakes at the arrival; a leap is cut if the request could join it.
        """
        self.waiting.append(request)
        if not self._leap.steps:
            return max(now, request.arrived_s)
        if self._leap.steps == 1 or not self._admissible(self.waiting, request):
            return None
        return self._leap.cut(now)

    def boundary(self, now: float) -> float | None:
        """Settle the steps that end now, plan those that follow; return when they end, or None when idle."""
        if self._leap.steps:
            self._settle(now)
        return self._plan(now)

    def abort(self, request: Request, now: float) -> float | None:
        """Give a request up: at once where it waits, at the end of the step under way where it runs.

        (vLLM, vllm/v1/core/sched/scheduler.py, ``finish_requests``, which is called between steps.)
        """
        if request in self.running:
            self._given_up.append(request)
            if self._chunk_of(request) is None:
                request.generated = self.decodes.emitted(request, self._leap.ended(now))
        else:
            self.waiting.remove(request)
            self.kv.forget(request)
        return self._leap.cut(now) if self._leap.steps else now

    def decline(self, request: Request, now: float) -> float | None:
        """Free the room of a request whose KV has come for nobody: now, or when the step under way ends."""
        if self._leap.steps:
            self._given_up.append(request)
            return self._leap.cut(now)
        self._let_go(request)
        return now

    def full_step(self) -> tuple[float, int]:
        """Return the seconds of a step filled up with one prompt beside the decodes, and its share of it."""
        tokens = max(self.token_budget - self.decodes.count, 1)
        return self.step_time.mixed(self.decodes.count, self.decodes.context(), [(tokens, 0)]), tokens

    def prompt_tokens_ahead(self) -> int:
        """Return the tokens that are to be computed before the prompt of a request that is queued now."""
        partly = self.partial.missing_tokens() if self.partial else 0
        return partly + sum(request.missing_tokens() for request in self.waiting)

    def halt(self, now: float) -> None:
        """Stop for good: settle the steps that have ended by now and forget the one under way."""
        if self._leap.halt(now):
            self._settle(self._leap.end_s)
        self.decodes.update()

    def kv_used(self, now: float) -> int:
        """Return the KV blocks that requests hold now."""
        begun = self._leap.begun(now)
        growth = self.decodes.blocks_after(begun - 1) if begun > 1 else 0
        return self.kv.blocks - self.kv.free + growth

    def cached_tokens_of(self, request: Request, now: float) -> int:
        """Return how many tokens of a prompt this replica would find in its cache now."""
        return self.kv.cached_tokens(request, self.kv.blocks - self.kv_used(now))

    # ---- planning ---------------------------------------------------------------------------------

    def _plan(self, now: float) -> float | None:
        preempted, decodes = self._serve_running(now), self.decodes
        if not preempted and (self.waiting or self._lands):
            self._admit(now)
        if self._chunks:
            return self._plan_mixed(now, decodes.count, decodes.context())
        if decodes.count:
            return self._plan_leap(now)
        return self._plan(now) if preempted else None

    def _plan_mixed(self, now: float, count: int, read: float) -> float:
        """Plan one step of so many decodes, which read so many KV tokens, beside the prefill chunks."""
        emitted: float = count
        chunks, tokens, context, pairs = [], 0, read, read
        if self._queries > 1 and count:
            context, pairs = self._attended(count, read)
            emitted = self.decodes.growth()
        for request, new in self._chunks:
            cached = request.computed
            chunks.append((new, cached))
            tokens += new
            context += cached + new
            pairs += new * cached + new * (new + 1) // 2
        first_s = self.step_time.mixed(count, read, chunks)
        if self.kv.swap is not None:
            first_s += self.kv.swap.wait_s()
        rows, blocks = count + len(chunks), self.kv.blocks - self.kv.free
        self._row = [
            self.replica, now, first_s, 0.0, 1, rows, count, tokens, context, pairs,
            blocks, blocks, self._queue_length(), self._preempted, 0, emitted,
        ]  # fmt: skip
        self._preempted = 0
        return self._leap.begin_one(now, first_s)

    def _plan_leap(self, now: float) -> float:
        """Plan as many decode steps as pass before a finish, a block shortage or a segment's end."""
        decodes, kv = self.decodes, self.kv
        count, context = decodes.count, decodes.context()
        growth: float = count
        read = pairs = context
        if self._queries > 1:
            growth = decodes.growth()
            read, pairs = self._attended(count, context)
        base_s, slope_s, limit = self.step_time.decode(count, context)
        first_s, increment_s, steps = base_s + slope_s * context, slope_s * growth, 1
        if not self._preempted:
            steps = decodes.steps_to_finish()
            if limit != inf:
                steps = min(steps, int((limit - context) // growth) + 1)
            if steps > 1:
                steps = 1 + decodes.steps_that_fit(kv.free, steps - 1)
        elif kv.swap is not None:
            first_s += kv.swap.wait_s()
        blocks = kv.blocks - kv.free
        self._row = [
            self.replica, now, first_s, increment_s, 1, count, count, 0, read, pairs,
            blocks, blocks, self._queue_length(), self._preempted, 0, growth,
        ]  # fmt: skip
        self._preempted = 0
        return self._leap.begin(now, steps, first_s, increment_s)

    def _attended(self, count: int, context: float) -> tuple[float, float]:
        """Return the KV tokens that decodes read with this context, and the query-key pairs they make."""
        read = context + (self._queries - 1) * count
        return read, self._queries * read

    def _queue_length(self) -> int:
        return len(self.waiting)

    # ---- settling ---------------------------------------------------------------------------------

    def _settle(self, now: float) -> None:
        """Let the steps under way have their effect: blocks taken, tokens emitted, requests finished."""
        leap, decodes, kv, row, log = self._leap, self.decodes, self.kv, self._row, self._log_step
        steps = leap.steps
        if steps > 1:
            kv.free -= decodes.blocks_after(steps - 1)
            row[STEPS] = steps
            row[KV_BLOCKS_LAST] = kv.blocks - kv.free
        log(pack_step(*row))
        leap.steps = 0
        if row[DECODES]:
            self._futile = 0
            decodes.step += steps
            if self._given_up:
                self._let_all_go()
            for request in decodes.pop_finished():
                kv.leave(request, request.input_tokens + request.output_tokens - 1)
                self._finish(request, now)
        elif self._given_up:
            self._let_all_go()
        for request, tokens in self._chunks:
            request.computed += tokens
            if request.computed == request.input_tokens + request.generated:
                self._prefilled(request, now)

    def _let_all_go(self) -> None:
        """Free the blocks of those who were given up during the steps that have just ended."""
        for request in self._given_up:
            self._let_go(request)
        self._given_up.clear()

    def _prefilled(self, request: Request, now: float) -> None:
        """Emit the token that ends a prefill or a recompute; the request decodes on, or has finished."""
        self._futile = 0
        if request is self.partial:
            self.partial = None
        if request.generated:
            log = self._log_gap
            log(pack_gap(request.id, now, request.resume(now), 1))
        else:
            self._emit_first(request, now)
        request.generated += 1
        if request.generated < request.output_tokens:
            self.decodes.join(request)
        else:
            self.kv.leave(request, request.computed)
            self._finish(request, now)

    def _emit_first(self, request: Request, now: float) -> None:
        request.first_token_s = now
        request.end_prefill(now)

    def _finish(self, request: Request, now: float) -> None:
        del self.running[request]
        request.finished_s = now
        request.generated = request.output_tokens
        tell = self._finished  # fetched before it is called (see the clock)
        tell(request)
