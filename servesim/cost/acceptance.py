"""How many drafted tokens a model accepts, from the rates at which it accepts each of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from operator import mul

#: Halvings of an interval of rates, after which nothing of a double is left to halve.
_HALVINGS = 60


def survivals(rates: Sequence[float]) -> tuple[float, ...]:
    """Return the probability that position i is accepted: the product of the rates up to it.

    A rate is that of a position given that all before it are accepted: the first rejection ends a draft.
    """
    return tuple(accumulate(rates, mul))


def mean_tokens(rates: Sequence[float]) -> float:
    """Return the mean tokens that a step of verification emits: those accepted, and the model's own next one.

        E = 1 + sum over i of a_1 x ... x a_i;   for one rate a: (1 - a^(k + 1)) / (1 - a)

    (Leviathan et al., "Fast Inference from Transformers via Speculative Decoding", ICML 2023, equation 1.)
    """
    return 1.0 + sum(survivals(rates))


def rate_of(tokens: float, drafted: int) -> float:
    """Return the one rate at which ``drafted`` tokens yield so many a step (1 to ``drafted`` + 1)."""
    low, high = 0.0, 1.0
    if tokens >= drafted + 1:
        return high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if mean_tokens((middle,) * drafted) < tokens:
            low = middle
        else:
            high = middle
    return low if tokens <= 1 else high
