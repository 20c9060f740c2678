"""Board power from how busy the GPU is."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from servesim.cost.gpu import Gpu

#: Weights of the compute and the bandwidth share in board power. Assumed: nothing has been fitted to
#: measured power yet.
COMPUTE_WEIGHT = 1.0
BANDWIDTH_WEIGHT = 1.0


def power_w(compute_share: ArrayLike, bandwidth_share: ArrayLike, gpu: Gpu) -> NDArray[np.float64]:
    """Return the board power of one GPU (W): idle + (max - idle) x min(1, a x compute + b x bandwidth).

    The shares are of the GPU's peak FLOP/s and HBM bandwidth; both 0 is an idle GPU. The weights a and b
    are assumed to be 1.
    """
    compute = COMPUTE_WEIGHT * np.asarray(compute_share, dtype=np.float64)
    bandwidth = BANDWIDTH_WEIGHT * np.asarray(bandwidth_share, dtype=np.float64)
    return gpu.idle_w + (gpu.max_w - gpu.idle_w) * np.minimum(1.0, compute + bandwidth)


def energy_joules(
    compute_share: ArrayLike, bandwidth_share: ArrayLike, seconds: ArrayLike, gpu: Gpu
) -> NDArray[np.float64]:
    """Return the energy of one GPU (J) over ``seconds`` at these shares; arrays broadcast."""
    return power_w(compute_share, bandwidth_share, gpu) * np.asarray(seconds, dtype=np.float64)
