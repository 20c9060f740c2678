"""The all-reduce of an engine among the GPUs of one node."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from servesim.check import LEAST_FACTOR, MOST_FACTOR, MOST_S, quantity
from servesim.cost.gpu import Gpu
from servesim.cost.kernels.smooth import FloatArray, Values, better

SWITCH = 6  # how sharply an engine changes from one way to the other


@dataclass(frozen=True)
class AllReduce:
    """The time of an all-reduce among ``gpus`` GPUs: the better of two ways, each latency + bytes / rate.

    One way is quick to start (one shot: every GPU reads all of every other's message), the other moves
    fewer bytes (two shots, or reduction in the switch). Rates are message bytes over time.
    """

    gpus: int = quantity(at_least=2, at_most=MOST_FACTOR)
    quick_s: float = quantity("s", at_least=0, at_most=MOST_S)
    quick_rate: float = quantity("of the NVLink speed", at_least=LEAST_FACTOR, at_most=MOST_FACTOR)
    steady_s: float = quantity("s", at_least=0, at_most=MOST_S)
    steady_rate: float = quantity("of the NVLink speed", at_least=LEAST_FACTOR, at_most=MOST_FACTOR)

    def seconds(self, gpu: Gpu, message_bytes: Values) -> FloatArray:
        """Return the time in seconds, never below the message's bytes / link speed."""
        size = np.asarray(message_bytes, dtype=np.float64)
        link = gpu.nvlink_bytes_per_s
        quick = self.quick_s + size / (self.quick_rate * link)
        steady = self.steady_s + size / (self.steady_rate * link)
        return np.maximum(better(quick, steady, SWITCH), size / link)
