"""The decoding sequences of a replica that decodes speculatively, as the few sums that steps depend on."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import NamedTuple

from servesim.engine.decodes import Decodes
from servesim.engine.token_draws import TokenDraws
from servesim.workload.request import Request

#: Tokens are counted in parts of one, so fine that rounding never shows, and whole, so that sums reverse.
PARTS = 2**40

#: Steps behind the present one for which no place is kept.
_STALE = 2**16


class Pace(NamedTuple):
    """At which rate a sequence gets its tokens: ``tokens`` over ``steps``, evenly, from step ``since`` on.

    ``computed`` is how many tokens its KV had then; ``rate`` the parts of tokens that it gets in a step.
    """

    since: int
    computed: int
    tokens: int
    steps: int
    rate: int

    def emitted(self, step: int) -> int:
        """Return the whole tokens that it has got before a step."""
        return (step - self.since) * self.tokens // self.steps


class SpeculativeDecodes(Decodes):
    """The sequences that get several tokens in every step, each at a constant rate of its own.

    How many steps a sequence takes is drawn when it joins (:class:`TokenDraws`), and its tokens are spread
    evenly over them: after j of n steps it has floor(j x tokens / n). One that comes back after a preemption
    goes on at its rate. So finish times stay known, and the total context grows by the same amount in every
    step: its fractions are not rounded off. Blocks come at irregular steps: how many each step takes is
    noted when a sequence joins. In a step it has blocks for ``slots`` tokens beyond those computed, though
    never for more than it will have at its end.
    """

    __slots__ = ("_base", "_blocks", "_draws", "_paces", "_rates", "_slots")

    def __init__(self, block_size: int, draws: TokenDraws, slots: int) -> None:
        super().__init__(block_size)
        self._draws = draws
        self._slots = slots
        self._paces: dict[Request, Pace] = {}
        self._rates = 0
        self._blocks: list[int] = []  # that each step takes, from step `_base` on
        self._base = 0

    # ---- members ----------------------------------------------------------------------------------

    def join(self, request: Request) -> None:
        """Add a sequence that has just emitted a token and has more to come."""
        pace = self._pace(request)
        self._paces[request] = pace
        self.count += 1
        self._rates += pace.rate
        self._anchors += pace.rate * pace.since - request.computed * PARTS
        last = pace.since + pace.steps
        bucket = self._buckets.get(last)
        if bucket is None:
            self._buckets[last] = [request]
            heappush(self._last_steps, last)
        else:
            bucket.append(request)
        self._reach(last)
        blocks, first, tokens = self._blocks, pace.since - self._base, pace.tokens
        at_once, later = self._growth_of(pace)
        blocks[first] += at_once
        for parts in later:
            blocks[first + parts // tokens] += 1

    def leave(self, request: Request) -> int:
        """Remove a sequence before its end, bring its counters up to date, and return its spare blocks.

        Those are the blocks that it holds beyond those of the tokens computed.
        """
        pace = self._drop(request)
        self._buckets[pace.since + pace.steps].remove(request)
        self._set(request, pace)
        spare = -(-pace.computed // self._block_size) - -(-request.computed // self._block_size)
        passed, first = self.step - pace.since, pace.since - self._base
        at_once, later = self._growth_of(pace)
        if passed:
            spare += at_once
        else:
            self._blocks[first] -= at_once
        taken = min(max(-((later.start - passed * pace.tokens) // later.step), 0), len(later))
        for parts in later[taken:]:
            self._blocks[first + parts // pace.tokens] -= 1
        return spare + taken

    def pop_finished(self) -> list[Request]:
        """Remove and return the sequences that finish at the present step, in the order they joined."""
        if self.step not in self._buckets:
            return []
        heappop(self._last_steps)
        finished = self._buckets.pop(self.step)
        for request in finished:
            self._drop(request)
        return finished

    def _drop(self, request: Request) -> Pace:
        pace = self._paces.pop(request)
        self.count -= 1
        self._rates -= pace.rate
        self._anchors -= pace.rate * pace.since - pace.computed * PARTS
        return pace

    def _pace(self, request: Request) -> Pace:
        """Draw the steps of all tokens behind the first, and return the pace of those to come."""
        tokens = further = request.output_tokens - 1
        steps = self._draws.steps(request.id, further)
        if request.generated > 1:
            tokens = request.output_tokens - request.generated
            steps = -(-tokens * steps // further)
        return Pace(self.step, request.computed, tokens, steps, tokens * PARTS // steps)

    def _growth_of(self, pace: Pace) -> tuple[int, range]:
        """Return how many blocks a sequence takes in its first step, and when those behind them.

        A block is taken in the first step before which enough tokens are emitted for the slots to reach into
        it: x tokens are in step ceil(x steps / tokens), and x grows by a block's size. The range is of the
        numerators, such that the step is their floor quotient by ``tokens``.
        """
        _, computed, tokens, steps, _ = pace
        size, slots = self._block_size, self._slots
        needed = -(-computed // size) * size + 1 - slots - computed
        at_once = 0
        if needed <= 0:
            at_once = (min(0, tokens - slots) - needed) // size + 1
            needed += at_once * size
        rounding = tokens - 1
        return at_once, range(needed * steps + rounding, (tokens - slots) * steps + tokens, size * steps)

    def _reach(self, last: int) -> None:
        """Have a place for every step before ``last``."""
        stale = self.step - self._base
        if stale > _STALE or self.count == 1:
            del self._blocks[:stale]
            self._base = self.step
        missing = last - self._base - len(self._blocks)
        if missing > 0:
            self._blocks += [0] * missing

    def emitted(self, request: Request, steps: int) -> int:
        """Return how many tokens a sequence has emitted ``steps`` steps after the present one."""
        pace = self._paces[request]
        return pace.computed + pace.emitted(self.step + steps) + 1 - request.input_tokens

    def _update(self, request: Request) -> None:
        self._set(request, self._paces[request])

    def _set(self, request: Request, pace: Pace) -> None:
        request.computed = pace.computed + pace.emitted(self.step)
        request.generated = request.computed + 1 - request.input_tokens

    # ---- the steps ahead --------------------------------------------------------------------------

    def context(self) -> float:
        """Return the KV tokens that the next step reads, the newest token of each sequence included."""
        return self.count + (self._rates * self.step - self._anchors) / PARTS

    def growth(self) -> float:
        """Return the tokens that each step emits: by so many the context grows."""
        return self._rates / PARTS

    def blocks(self) -> int:
        """Return the KV blocks that the next step takes."""
        return self._blocks[self.step - self._base] if self.count else 0

    def blocks_after(self, steps: int) -> int:
        """Return the KV blocks that the ``steps`` steps after the next one take."""
        first = self.step + 1 - self._base
        return sum(self._blocks[first : first + steps])

    def steps_that_fit(self, free: int, limit: int) -> int:
        """Return how many steps after the next one, at most ``limit``, ``free`` blocks allow."""
        first = self.step + 1 - self._base
        ahead = self._blocks[first : first + limit]
        if sum(ahead) <= free:
            return limit
        for steps, blocks in enumerate(ahead):
            free -= blocks
            if free < 0:
                return steps
        return limit
