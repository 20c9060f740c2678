"""Board power from how busy the GPU is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from servesim.check import MOST_FACTOR, quantity
from servesim.cost.gpu import Gpu


@dataclass(frozen=True)
class BoardPower:
    """What the compute and the bandwidth share weigh in the power of a GPU's board.

    In a step it draws idle + (max - idle) x min(1, a x compute share + b x bandwidth share), between steps
    the idle power. The shares are of the GPU's peak FLOP/s and HBM bandwidth, each from 0 to 1. Weights
    above 1 mean that the board reaches its limit before the peak. Weights of 1 are an assumption; those of
    ``conf/board_power`` that carry a ``provenance`` are fitted on measured power.
    """

    name: str = quantity(default="assumed")
    compute_weight: float = quantity(at_least=0, at_most=MOST_FACTOR, default=1.0)
    bandwidth_weight: float = quantity(at_least=0, at_most=MOST_FACTOR, default=1.0)
    provenance: Mapping[str, Any] | None = field(default=None, compare=False)

    def power_w(self, compute_share: ArrayLike, bandwidth_share: ArrayLike, gpu: Gpu) -> NDArray[np.float64]:
        """Return the board power of one GPU (W) at these shares; both 0 is an idle GPU."""
        compute = self.compute_weight * np.asarray(compute_share, dtype=np.float64)
        bandwidth = self.bandwidth_weight * np.asarray(bandwidth_share, dtype=np.float64)
        return np.minimum(gpu.max_w, gpu.idle_w + (gpu.max_w - gpu.idle_w) * (compute + bandwidth))

    def energy_joules(
        self, compute_share: ArrayLike, bandwidth_share: ArrayLike, seconds: ArrayLike, gpu: Gpu
    ) -> NDArray[np.float64]:
        """Return the energy of one GPU (J) over ``seconds`` at these shares; arrays broadcast."""
        return self.power_w(compute_share, bandwidth_share, gpu) * np.asarray(seconds, dtype=np.float64)
