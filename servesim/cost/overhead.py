"""What an engine adds to its kernels' time: the host's work, and what slows prefill down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from servesim.check import MOST_FACTOR, quantity

#: A quarter of an hour for one step: a run has many of them.
MOST_STEP_S = 1e3


@dataclass(frozen=True)
class EngineOverhead:
    """Three terms of one engine version, fitted on measured runs rather than on kernels.

    A step takes, beside its kernels, ``step_s`` (scheduling, preparing inputs, launches, sampling) and
    ``sequence_s`` for each sequence in it. Prefill tokens take ``prefill_factor`` times their kernels' time:
    sustained prefill is slower than a lone kernel (clocks under the power limit, ragged sizes, no CUDA
    graph), and the runs do not tell the causes apart. The terms hold for the engine's kernel profiles,
    whose errors they absorb; ``engine`` names those profiles.
    """

    name: str = quantity()
    engine: str = quantity()
    engine_version: str = quantity()
    step_s: float = quantity("s", at_least=0, at_most=MOST_STEP_S)
    sequence_s: float = quantity("s per sequence", at_least=0, at_most=MOST_STEP_S)
    prefill_factor: float = quantity(at_least=1, at_most=MOST_FACTOR)
    provenance: Mapping[str, Any] | None = field(default=None, compare=False)
