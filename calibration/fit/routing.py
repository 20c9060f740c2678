"""How the benchmarks behind the tables of experts spread tokens over experts."""

from __future__ import annotations

from functools import cache
from math import ceil

import numpy as np
from numpy.typing import NDArray

from servesim.cost.kernels.moe import PADDING


@cache
def load(tokens: int, top_k: int, experts: int, distribution: str) -> tuple[int, int]:
    """Return (experts hit, rows padded) of a benchmark's batch (see :class:`Moe`)."""
    counts = tokens_per_expert(tokens, top_k, experts, distribution)
    return int((counts > 0).sum()), sum(ceil(count / PADDING) * PADDING for count in counts)


def tokens_per_expert(tokens: int, top_k: int, experts: int, distribution: str) -> NDArray[np.int64]:
    """Return the tokens of each expert, for ``balanced`` or ``power_law_<exponent>``.

    The collector of the tables (ai-dynamo/aiconfigurator, collector/helper.py) draws a power law between 1
    and 0.8 x tokens (0.01 and 2 where there are fewer assignments than experts), scales it to the number
    of assignments, rounds, cuts at one assignment per token, and makes the sum right by raising the least
    and lowering the largest. Its draws are not known: here they are the quantiles of the distribution.
    """
    assignments = tokens * top_k
    if distribution == "balanced":
        counts = np.full(experts, assignments // experts, dtype=np.int64)
        counts[: assignments % experts] += 1
        return counts
    power = 1 - float(distribution.removeprefix("power_law_"))
    low, high = (1.0, tokens * 0.8) if assignments > experts else (0.01, 2.0)
    share = (np.arange(experts) + 0.5) / experts
    weights = ((high**power - low**power) * share + low**power) ** (1 / power)
    counts = np.minimum(np.round(assignments * weights / weights.sum()), tokens).astype(np.int64)
    return _summing_to(assignments, counts)


def _summing_to(total: int, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Raise the least counts, or lower the largest, one by one until they sum to ``total``."""
    missing = total - int(counts.sum())
    counts = np.sort(counts)
    for _ in range(-missing):
        counts[counts.argmax()] -= 1
    while missing > 0:
        lowest = int((counts == counts[0]).sum())
        step = counts[lowest] - counts[0] if lowest < len(counts) else missing // lowest
        rounds = min(int(step), missing // lowest)
        if rounds == 0:
            counts[:missing] += 1
            break
        counts[:lowest] += rounds
        missing -= rounds * lowest
    return counts
