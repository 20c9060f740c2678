"""What no kernel beats: the datasheet's arithmetic and bandwidth, whatever a form predicts.

Activations may be in the L2 cache when a kernel starts, so only weights and KV count as bytes.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from servesim.cost.gpu import Gpu
from servesim.cost.kernels.smooth import FloatArray, Values

#: Formats of a matrix product. fp8: one scale per tensor, channel or token. fp8_block: one per 128 x 128
#: weights and 128 activations. int4, mxfp4: weights only, multiplied in BF16 (groups of 128 and of 32).
Dtype = Literal["bf16", "fp8", "fp8_block", "int4", "mxfp4"]

#: Bytes per weight, scales included: int4 as in AWQ and GPTQ; OCP Microscaling (MX) v1.0 for mxfp4: 4 bits
#: and 8 bits of scale per 32; a float32 scale per 128 x 128 weights is too little to count.
WEIGHT_BYTES: dict[str, float] = {
    "bf16": 2.0,
    "fp8": 1.0,
    "fp8_block": 1.0,
    "int4": (4 + (16 + 4) / 128) / 8,
    "mxfp4": (4 + 8 / 32) / 8,
}

#: Bytes per activation that a product reads.
ACTIVATION_BYTES: dict[str, float] = {"bf16": 2.0, "fp8": 1.0, "fp8_block": 1.0, "int4": 2.0, "mxfp4": 2.0}

KV_BYTES: dict[str, float] = {"bf16": 2.0, "fp8": 1.0}


def peak_flops(gpu: Gpu, dtype: str) -> float:
    """Return the rate (FLOP/s) of the tensor cores for operands of this format."""
    return gpu.peak_flops("fp8" if dtype == "fp8_block" else dtype)


def kernel_floor(gpu: Gpu, flops: Values, peak: float, hbm_bytes: Values) -> FloatArray:
    """Return max(FLOPs / peak, weight and KV bytes / HBM bandwidth) in seconds."""
    return np.maximum(np.asarray(flops) / peak, np.asarray(hbm_bytes) / gpu.hbm_bytes_per_s)
