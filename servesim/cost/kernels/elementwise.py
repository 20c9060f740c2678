"""Kernels that go once through the activations: quantisation to FP8, norms, rotary embedding, activation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from servesim.check import LEAST_FACTOR, MOST_BYTES, MOST_FACTOR, MOST_S, quantity
from servesim.cost.gpu import Gpu
from servesim.cost.kernels.smooth import FloatArray, Values, overlapped

ROW = 8192  # elements of the row that ``row_s`` is of
QUANTISED_BYTES = 3  # an element is read in BF16 and written in FP8
TURN = 4  # how sharply the rate turns from that of the cache to that of HBM


@dataclass(frozen=True)
class Elementwise:
    """The time of a kernel that goes once through the activations.

        t = launch + row x k / 8192 + overlap(bytes / cache bandwidth, bytes beyond the cache / bandwidth)

    ``k`` is the length of a row, along which a block of threads runs.
    """

    launch_s: float = quantity("s", at_least=0, at_most=MOST_S)
    row_s: float = quantity("s per row of 8,192 elements", at_least=0, at_most=MOST_S)
    cache_bytes: float = quantity("bytes", above=0, at_most=MOST_BYTES)
    cache_bandwidth: float = quantity("of the HBM bandwidth", at_least=LEAST_FACTOR, at_most=MOST_FACTOR)
    bandwidth: float = quantity("of the HBM bandwidth", at_least=LEAST_FACTOR, at_most=MOST_FACTOR)

    def seconds(self, gpu: Gpu, m: Values, k: Values, element_bytes: Values = QUANTISED_BYTES) -> FloatArray:
        """Return the time in seconds for m rows of k elements, each ``element_bytes`` read and written.

        The default is quantisation from BF16 to FP8. Activations have no floor: they may all be in the
        cache.
        """
        m, k = np.asarray(m, float), np.asarray(k, float)
        moved = element_bytes * m * k
        cached = moved / (self.cache_bandwidth * gpu.hbm_bytes_per_s)
        beyond = np.maximum(moved - self.cache_bytes, 0) / (self.bandwidth * gpu.hbm_bytes_per_s)
        return self.launch_s + self.row_s * k / ROW + overlapped(cached, beyond, TURN)
