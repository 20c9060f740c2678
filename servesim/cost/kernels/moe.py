"""The experts of a mixture: two grouped matrix products and the activation between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from servesim.check import LEAST_FACTOR, MOST_FACTOR, MOST_S, quantity
from servesim.cost.gpu import Gpu
from servesim.cost.kernels.floor import WEIGHT_BYTES, Dtype, kernel_floor, peak_flops
from servesim.cost.kernels.smooth import FloatArray, Values, overlapped

PADDING = 64  # rows that a grouped product computes at once: an expert's tokens are padded to that


@dataclass(frozen=True)
class Moe:
    """The time of one layer's gated experts on one GPU.

        t = launch + expert x hit + overlap(their weights / bandwidth, FLOPs of padded rows / rate)
            + activations / activation bandwidth

    ``hit`` experts have a token to compute; their tokens are padded to ``padded`` rows in all
    (:func:`load`). Three matrices of hidden x inter per expert: gate, up and down.
    """

    dtype: Dtype = quantity()
    launch_s: float = quantity("s", at_least=0, at_most=MOST_S)
    expert_s: float = quantity("s per expert hit", at_least=0, at_most=MOST_S)
    bandwidth: float = quantity("of the HBM bandwidth", at_least=LEAST_FACTOR, at_most=MOST_FACTOR)
    rate: float = quantity("of the peak FLOP/s", at_least=LEAST_FACTOR, at_most=MOST_FACTOR)
    activation_bandwidth: float = quantity("of the HBM bandwidth", at_least=LEAST_FACTOR, at_most=MOST_FACTOR)
    overlap: float = quantity(at_least=1, at_most=MOST_FACTOR)

    def seconds(
        self,
        gpu: Gpu,
        tokens: Values,
        hidden: Values,
        inter: Values,
        top_k: Values,
        hit: Values,
        padded: Values,
    ) -> FloatArray:
        """Return the time in seconds; ``inter`` is one GPU's share of the experts' inner size."""
        tokens, hidden, inter, top_k = (np.asarray(x, float) for x in (tokens, hidden, inter, top_k))
        hit, padded = np.asarray(hit, float), np.asarray(padded, float)
        expert = 3 * hidden * inter
        weights = hit * expert * WEIGHT_BYTES[self.dtype]
        peak, rate = peak_flops(gpu, self.dtype), gpu.hbm_bytes_per_s
        rows = tokens * top_k
        moved = 2 * rows * (2 * hidden + 3 * inter) + 4 * tokens * hidden
        both = overlapped(
            weights / (self.bandwidth * rate), 2 * expert * padded / (self.rate * peak), self.overlap
        )
        form = self.launch_s + self.expert_s * hit + both + moved / (self.activation_bandwidth * rate)
        return np.maximum(form, kernel_floor(gpu, 2 * expert * rows, peak, weights))


def load(tokens_per_expert: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (experts hit, rows padded) from the expected tokens of each expert (last axis).

    An expert with an expectation of n has no token with probability exp(-n) (Poisson).
    """
    hit = (1 - np.exp(-tokens_per_expert)).sum(axis=-1)
    padded = (np.ceil(tokens_per_expert / PADDING) * PADDING).sum(axis=-1)
    return hit, padded
