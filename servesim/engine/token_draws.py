"""How many steps of verification a request takes for its tokens: drawn once per request."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from servesim.cost.acceptance import survivals

#: Steps in the pool that all requests draw from.
STEPS = 2**14

#: Where in the pool request i begins: i times this, a number without a factor in common with ``STEPS`` that
#: spreads successive requests evenly (the golden section of the pool).
STRIDE = 10125


class TokenDraws:
    """The tokens that steps of verification emit, and how many steps add up to what a request asks for.

    A step emits 1 + the number of positions i whose uniform u < a_1 x ... x a_i: a geometric number, cut off
    at the length of the draft. Requests draw from one pool of steps, each from a place of its own on; u is
    stratified over the pool, so that its mean is the formula's. A request has the same uniforms in every
    configuration (common random numbers): with higher rates, no request takes more steps.

    Args:
        rates: the acceptance rate of each drafted position, given that all before it are accepted.
        stream: where the uniforms come from.
    """

    def __init__(self, rates: Sequence[float], stream: np.random.Generator) -> None:
        uniforms = (stream.permutation(STEPS) + stream.random(STEPS)) / STEPS
        accepted = sum((uniforms < survival).astype(np.int64) for survival in survivals(rates))
        self._sums: list[int] = [0, *np.cumsum(1 + accepted).tolist()]

    @property
    def mean_tokens(self) -> float:
        """The mean tokens of a step over the whole pool."""
        return self._sums[STEPS] / STEPS

    def steps(self, request: int, tokens: int) -> int:
        """Return the steps that a request takes to emit so many tokens; the last may overshoot."""
        sums = self._sums
        begin = request * STRIDE % STEPS
        rounds, rest = divmod(sums[begin] + tokens, sums[STEPS])
        return rounds * STEPS + bisect_left(sums, rest) - begin
