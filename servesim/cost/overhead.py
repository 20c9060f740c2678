"""What an engine adds to its kernels' time: the host's work, and what slows prefill down."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

from servesim.check import MOST_FACTOR, Problem, quantity

#: A quarter of an hour for one step: a run has many of them.
MOST_STEP_S = 1e3


@dataclass(frozen=True)
class EngineOverhead:
    """Three terms of one engine version, fitted on measured runs rather than on kernels.

    A step takes, beside its kernels, ``step_s`` (scheduling, preparing inputs, launches, sampling) and
    ``sequence_s`` for each sequence in it; where drafted tokens are verified, for each of them, too, as each
    has logits that top-k and top-p are applied to (vLLM, vllm/v1/sample/rejection_sampler.py), and is handed
    on by the host like any other. Prefill tokens take ``prefill_factor`` times their kernels' time:
    sustained prefill is slower than a lone kernel (clocks under the power limit, ragged sizes, no CUDA
    graph), and the runs do not tell the causes apart. The terms hold for the engine's kernel profiles,
    whose errors they absorb; ``engine`` names those profiles.

    ``model`` and ``gpu`` are those of the runs; the terms are taken over to every other. ``ranges`` say how
    many ``sequences`` the runs had at once, [fewest, most]: the host's time of more is extrapolated. That of
    fewer is not, as it lies between nothing and what was fitted.
    """

    name: str = quantity()
    engine: str = quantity()
    engine_version: str = quantity()
    step_s: float = quantity("s", at_least=0, at_most=MOST_STEP_S)
    sequence_s: float = quantity("s per sequence", at_least=0, at_most=MOST_STEP_S)
    prefill_factor: float = quantity(at_least=1, at_most=MOST_FACTOR)
    model: str | None = quantity(default=None)
    gpu: str | None = quantity(default=None)
    ranges: Mapping[str, Any] = field(default_factory=dict, hash=False)
    provenance: Mapping[str, Any] | None = field(default=None, compare=False)

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong with the ranges."""
        ranges: Any = self.ranges
        if not isinstance(ranges, Mapping):
            yield Problem("ranges", ranges, "must be keys with values")
            return
        for name, said in ranges.items():
            if name != "sequences":
                yield Problem(f"ranges.{name}", said, "unknown range; the one there is is sequences")
            elif not _is_range(said):
                yield Problem(f"ranges.{name}", said, "must be [fewest, most], two counts of sequences")

    @property
    def most_sequences(self) -> float:
        """The most sequences of a step whose host time is not extrapolated; no limit where none is said."""
        return float(self.ranges["sequences"][1]) if self.ranges else inf


def _is_range(said: object) -> bool:
    """Tell whether these are two counts, the smaller one first."""
    if not isinstance(said, (list, tuple)) or len(said) != 2:
        return False
    return all(type(end) is int and end > 0 for end in said) and said[0] <= said[1]
