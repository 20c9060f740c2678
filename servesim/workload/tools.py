"""Tools: what an agent calls between two turns of a human."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from servesim.check import MOST_S, quantity
from servesim.workload.lengths import Lengths

#: Calls that follow one turn of a human, on average.
MOST_CALLS = 1000


@dataclass(frozen=True)
class Tools:
    """Calls that follow the answer to a human's turn, ``calls`` of them on average.

    After each answer the agent calls a tool with probability calls / (1 + calls), so that their number is
    geometric from 0 on. The result comes after ``delay_s``, always as long or exponentially distributed about
    that mean, and goes out with the next request; ``lengths`` are the tokens of the result and of what the
    model then writes.
    """

    lengths: Lengths
    calls: float = quantity("calls per turn on average", at_least=0, at_most=MOST_CALLS, default=0.0)
    delay_s: float = quantity("s", at_least=0, at_most=MOST_S, default=1.0)
    delay: Literal["constant", "exponential"] = quantity(default="exponential")

    @property
    def probability(self) -> float:
        """Return the probability that a tool is called after an answer."""
        return self.calls / (1 + self.calls)
