"""Step times for tests: simple enough to check with a pencil, rich enough to reach every branch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from servesim.cost.step_time import Operation


@dataclass(frozen=True)
class AffineStepTime:
    """A step time that is affine in what the step holds, and piecewise affine in total context.

    A step lasts ``step_s`` + ``sequence_s`` per decode + ``context_s`` per context token of the decodes
    + ``prefill_token_s`` per new token of its chunks + ``cached_token_s`` per cached token of its chunks
    (seconds). ``breaks`` lists (context, slope): beyond that total context a further context token costs
    that slope; the step time itself does not jump there.
    """

    step_s: float = 0.01
    sequence_s: float = 0.0
    context_s: float = 0.0
    prefill_token_s: float = 0.0
    cached_token_s: float = 0.0
    breaks: tuple[tuple[int, float], ...] = ()

    def decode(self, sequences: int, context: float) -> tuple[float, float, float]:
        """Return (base, slope, limit): base + slope x c seconds for context <= c <= limit tokens."""
        base_s = self.step_s + self.sequence_s * sequences
        slope_s = self.context_s
        for limit, next_slope_s in self.breaks:
            if context <= limit:
                return base_s, slope_s, limit
            base_s += (slope_s - next_slope_s) * limit
            slope_s = next_slope_s
        return base_s, slope_s, inf

    def mixed(self, sequences: int, context: float, chunks: Sequence[tuple[int, int]]) -> float:
        """Return the seconds of a step of decodes beside chunks of (new, cached) tokens."""
        base_s, slope_s, _ = self.decode(sequences, context)
        seconds = base_s + slope_s * context
        for new, cached in chunks:
            seconds += self.prefill_token_s * new + self.cached_token_s * cached
        return seconds

    def work(self, *, steps: Any, tokens: Any, rows: Any, pairs: Any, context: Any) -> tuple[Any, Any]:
        """Return (FLOPs, bytes): one FLOP per token and pair, one byte per step, row and context token."""
        return tokens + pairs, steps + rows + context

    def breakdown(self, sequences: int, context: int, chunks: Sequence[tuple[int, int]]) -> list[Operation]:
        """Return the whole step as one operation."""
        seconds = self.mixed(sequences, context, chunks)
        return [Operation(name="step", flops=0.0, bytes=0.0, seconds=seconds, bound="latency")]


def constant_step(seconds: float) -> AffineStepTime:
    """Return a step time that is the same for every step, whatever it holds."""
    return AffineStepTime(step_s=seconds)
