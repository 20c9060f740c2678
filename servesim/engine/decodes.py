"""The decoding sequences of one replica, as the few sums that the next steps depend on."""

from __future__ import annotations

from heapq import heappop, heappush

from servesim.workload.request import Request


class Decodes:
    """The sequences that get one token in every step, kept so that no step has to look at each of them.

    ``step`` counts the steps of the replica. A sequence that joins has a constant *anchor*, the step minus
    its computed tokens; so at any later step s its KV has s - anchor tokens, and

    - the total context of the next step is count x (s + 1) - sum of anchors;
    - its last token leaves at the end of step anchor + input + output - 1: finishes wait in buckets by
      step, under a heap of steps;
    - it takes a KV block in the steps s with s = anchor modulo the block size: a histogram of anchors
      modulo the block size tells how many blocks any run of steps takes.
    """

    __slots__ = ("_anchors", "_block_size", "_buckets", "_growth", "_last_steps", "count", "step")

    def __init__(self, block_size: int) -> None:
        self.step = 0
        self.count = 0
        self._block_size = block_size
        self._anchors = 0
        self._growth = [0] * block_size
        self._buckets: dict[int, list[Request]] = {}
        self._last_steps: list[int] = []

    # ---- members ----------------------------------------------------------------------------------

    def join(self, request: Request) -> None:
        """Add a sequence that has just emitted a token and has more to come."""
        request.anchor = anchor = self.step - request.computed
        self.count += 1
        self._anchors += anchor
        self._growth[anchor % self._block_size] += 1
        last = anchor + request.input_tokens + request.output_tokens - 1
        bucket = self._buckets.get(last)
        if bucket is None:
            self._buckets[last] = [request]
            heappush(self._last_steps, last)
        else:
            bucket.append(request)

    def leave(self, request: Request) -> int:
        """Remove a sequence before its end, bring its counters up to date, and return its spare blocks.

        Those are the blocks that it holds beyond those of the tokens computed: here there are none.
        """
        anchor = request.anchor
        self.count -= 1
        self._anchors -= anchor
        self._growth[anchor % self._block_size] -= 1
        self._buckets[anchor + request.input_tokens + request.output_tokens - 1].remove(request)
        self._update(request)
        return 0

    def pop_finished(self) -> list[Request]:
        """Remove and return the sequences that finish at the present step, in the order they joined."""
        finished = self._buckets.pop(self.step, None)
        if finished is None:
            return []
        heappop(self._last_steps)
        for request in finished:
            anchor = request.anchor
            self._anchors -= anchor
            self._growth[anchor % self._block_size] -= 1
        self.count -= len(finished)
        return finished

    def emitted(self, request: Request, steps: int) -> int:
        """Return how many tokens a sequence has emitted ``steps`` steps after the present one."""
        return self.step + steps - request.anchor + 1 - request.input_tokens

    def update(self) -> None:
        """Bring the counters of every sequence up to date."""
        for bucket in self._buckets.values():
            for request in bucket:
                self._update(request)

    def _update(self, request: Request) -> None:
        request.computed = self.step - request.anchor
        request.generated = request.computed + 1 - request.input_tokens

    # ---- the steps ahead --------------------------------------------------------------------------

    def context(self) -> float:
        """Return the KV tokens that the next step reads, the new token of each sequence included."""
        return self.count * (self.step + 1) - self._anchors

    def growth(self) -> float:
        """Return the tokens that each step emits: by so many the context grows."""
        return self.count

    def blocks(self) -> int:
        """Return the KV blocks that the next step takes."""
        return self._growth[self.step % self._block_size]

    def blocks_after(self, steps: int) -> int:
        """Return the KV blocks that the ``steps`` steps after the next one take."""
        cycles, rest = divmod(steps, self._block_size)
        first = (self.step + 1) % self._block_size
        last = first + rest
        blocks = cycles * self.count + sum(self._growth[first:last])
        return blocks + sum(self._growth[: last - self._block_size]) if last > self._block_size else blocks

    def steps_that_fit(self, free: int, limit: int) -> int:
        """Return how many steps after the next one, at most ``limit``, ``free`` blocks allow."""
        if self.count * -(-limit // self._block_size) <= free:
            return limit
        cycles = free // self.count
        free -= cycles * self.count
        steps = cycles * self._block_size
        while steps < limit and (need := self._growth[(self.step + 1 + steps) % self._block_size]) <= free:
            free -= need
            steps += 1
        return steps

    def steps_to_finish(self) -> int:
        """Return the number of steps until the next sequence finishes; there must be one."""
        last_steps = self._last_steps
        while not self._buckets[last_steps[0]]:
            del self._buckets[heappop(last_steps)]
        return last_steps[0] - self.step
