"""Orders by what is known of a request when it comes: the shortest first, the earliest deadline first."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from statistics import NormalDist
from typing import Literal

from servesim.check import quantity
from servesim.engine.decodes import Decodes
from servesim.engine.queue_order.order import Books, QueueOrder
from servesim.engine.queue_order.sorted_queue import SortedQueue
from servesim.workload.request import Request


@dataclass(frozen=True)
class ShortestFirst(QueueOrder):
    """The least work first, which makes the mean wait shortest (Smith, 1956) and may starve the longest.

    ``by`` says what work is: the tokens of the prompt, which a server knows; or those of the output, or of
    both, which it could only predict. The simulator knows them: an oracle, and a bound on what a predictor of
    lengths can bring (Fu et al., "Efficient LLM Scheduling by Learning to Rank", 2024). ``noise`` makes it a
    predictor that errs: the logarithm of what it says of a request's output is off by a normal error of this
    standard deviation, the same one whenever and wherever it is asked.
    """

    by: Literal["input", "output", "total"] = quantity(default="input")
    noise: float = quantity("standard deviation of a logarithm", at_least=0, at_most=10, default=0.0)

    def start(self, block_size: int) -> Books:
        """Return the empty books of a replica."""
        return Books(SortedQueue(self.work), {}, Decodes(block_size))

    def work(self, request: Request) -> float:
        """Return the tokens by which a request is ranked."""
        if self.by == "input":
            return request.input_tokens
        output = request.output_tokens * (exp(self.noise * _error(request.id)) if self.noise else 1)
        return output if self.by == "output" else request.input_tokens + output


@dataclass(frozen=True)
class EarliestDeadline(QueueOrder):
    """The earliest deadline first, that of arrival plus the request's slack (Liu and Layland, 1973).

    Requests without a deadline come last. A deadline that has passed stays the most urgent.
    """

    def start(self, block_size: int) -> Books:
        """Return the empty books of a replica."""
        return Books(SortedQueue(deadline_s), {}, Decodes(block_size))


def deadline_s(request: Request) -> float:
    """Return when the first token of a request is wanted."""
    return request.arrived_s + request.origin.slack_s


def _error(number: int) -> float:
    """Return a standard normal figure that belongs to a number (Steele et al., SplitMix, OOPSLA 2014)."""
    mask = (1 << 64) - 1
    mixed = (number + 1) * 0x9E3779B97F4A7C15 & mask
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 & mask
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB & mask
    mixed ^= mixed >> 31
    return _NORMAL.inv_cdf(((mixed >> 11) + 0.5) / (1 << 53))


_NORMAL = NormalDist()
