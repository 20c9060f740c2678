"""Dense matrix products: the projections of a layer and the LM head."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from servesim.check import LEAST_FACTOR, MOST_FACTOR, MOST_S, quantity
from servesim.cost.gpu import Gpu
from servesim.cost.kernels.floor import ACTIVATION_BYTES, WEIGHT_BYTES, Dtype, kernel_floor, peak_flops
from servesim.cost.kernels.smooth import FloatArray, Values, overlapped

TILE = 128  # rows and columns of a whole output tile


@dataclass(frozen=True)
class Gemm:
    """The time of C[m, n] = A[m, k] B[k, n], B being weights in HBM.

        t = launch + overlap(waves x depth x tile time + A / input bandwidth, B / bandwidth)
            + C / output bandwidth + m x row time

    The output is computed in tiles, one per multiprocessor at a time. ``waves`` = max(tiles /
    multiprocessors, 1), or its ceiling: ``wave_quantisation`` blends the two. ``depth`` = the k elements that
    a tile goes through, and ``fill_depth`` more for filling and draining it. The overlap is that of
    :func:`overlapped`; the tiles' reads of A from the cache are ``input_bandwidth``.

    A library that searches (cuBLAS; ``narrow_tile`` given) takes the best of tiles of 128 x 128, 64 x 128
    and 64 x 64, and where multiprocessors are to spare it splits k over them, down to ``split_depth``
    (split-K). One that goes by m alone (CUTLASS as vLLM builds it) takes 64 x 128 up to 128 rows and
    128 x 128 beyond, set up differently up to 64 rows (``skinny_tile``) and up to 512 (``middle_tile``).

    Where m is no multiple of 4, FP8 kernels choose a slower layout from about one wave on: with ``ragged``
    set, ``seconds`` charges such rows (1 + ``ragged_penalty``) on their depth; an engine pads m instead.

    Where rows of A have a scale each, a block of threads per row finds and applies it (``row_s``, beyond
    what :class:`.Elementwise` says of quantisation).
    """

    dtype: Dtype = quantity()
    multiprocessors: int = quantity(at_least=1, at_most=MOST_FACTOR)
    launch_s: float = quantity("s", at_least=0, at_most=MOST_S)
    bandwidth: float = quantity("of the HBM bandwidth", at_least=LEAST_FACTOR, at_most=MOST_FACTOR)
    input_bandwidth: float = quantity("of the HBM bandwidth", at_least=LEAST_FACTOR, at_most=MOST_FACTOR)
    output_bandwidth: float = quantity("of the HBM bandwidth", at_least=LEAST_FACTOR, at_most=MOST_FACTOR)
    tile_rate: float = quantity(
        "of the peak FLOP/s, tiles of 128 x 128", at_least=LEAST_FACTOR, at_most=MOST_FACTOR
    )
    half_tile: float = quantity("time of a tile of 64 x 128, in whole tiles", above=0, at_most=1)
    skinny_tile: float = quantity("the same up to 64 rows, in half tiles", above=0, at_most=1)
    wave_quantisation: float = quantity(at_least=0, at_most=1)
    overlap: float = quantity(at_least=1, at_most=MOST_FACTOR)
    narrow_tile: float | None = quantity(
        "time of a tile of 64 x 64, in half tiles", at_least=LEAST_FACTOR, at_most=MOST_FACTOR, default=None
    )
    split_depth: float | None = quantity(
        "elements of k; null: never split", at_least=LEAST_FACTOR, at_most=MOST_FACTOR, default=None
    )
    middle_tile: float = quantity("time of a whole tile up to 512 rows", above=0, at_most=1, default=1.0)
    fill_depth: float = quantity("elements of k", at_least=0, at_most=MOST_FACTOR, default=0.0)
    ragged_penalty: float = quantity(at_least=0, at_most=MOST_FACTOR, default=0.0)
    row_s: float = quantity("s per row", at_least=0, at_most=MOST_S, default=0.0)

    def seconds(self, gpu: Gpu, m: Values, n: Values, k: Values, *, ragged: bool = False) -> FloatArray:
        """Return the time of the product in seconds; non-decreasing in m, n and k unless ``ragged``."""
        m, n, k = (np.asarray(size, dtype=np.float64) for size in (m, n, k))
        rate = gpu.hbm_bytes_per_s
        weights = n * k * WEIGHT_BYTES[self.dtype]
        inputs = m * k * ACTIVATION_BYTES[self.dtype] / (self.input_bandwidth * rate)
        written = 2 * m * n / (self.output_bandwidth * rate) + m * self.row_s
        depth = k * (1 + self._penalty(m, n)) if ragged else k
        busy = self._compute(gpu, m, n, depth) + inputs
        form = self.launch_s + overlapped(busy, weights / (self.bandwidth * rate), self.overlap) + written
        return np.maximum(form, kernel_floor(gpu, 2 * m * n * k, peak_flops(gpu, self.dtype), weights))

    def _compute(self, gpu: Gpu, m: FloatArray, n: FloatArray, k: FloatArray) -> FloatArray:
        """Return the time that the tiles take on the tensor cores."""
        whole = 2 * TILE * TILE * self.multiprocessors / (self.tile_rate * peak_flops(gpu, self.dtype))
        half = self.half_tile * np.where(m <= TILE // 2, self.skinny_tile, 1)
        low = self._tiled(m, n, k, TILE // 2, TILE) * half
        high = self._tiled(m, n, k, TILE, TILE)
        if self.narrow_tile is None:
            return whole * np.where(m <= TILE, low, high * np.where(m <= 4 * TILE, self.middle_tile, 1))
        narrow = self._tiled(m, n, k, TILE // 2, TILE // 2) * self.half_tile * self.narrow_tile
        return whole * np.minimum(np.minimum(low, high), narrow)

    def _tiled(self, m: FloatArray, n: FloatArray, k: FloatArray, rows: int, columns: int) -> FloatArray:
        """Return waves x depth with tiles of this size."""
        share = self._share(m, n, rows, columns)
        waves = np.maximum(share, 1)
        waves = waves + self.wave_quantisation * (np.ceil(share) - waves)
        if self.split_depth is None:
            return waves * (k + self.fill_depth)
        return waves * (k / np.maximum(np.minimum(1 / share, k / self.split_depth), 1) + self.fill_depth)

    def _share(self, m: FloatArray, n: FloatArray, rows: int, columns: int) -> FloatArray:
        return np.ceil(m / rows) * np.ceil(n / columns) / self.multiprocessors

    def _penalty(self, m: FloatArray, n: FloatArray) -> FloatArray:
        """Return the share of depth that a ragged m adds."""
        ragged = (m > 2 * TILE) & (m % 4 != 0)
        return self.ragged_penalty * np.where(ragged, np.clip(self._share(m, n, TILE, TILE) - 0.5, 0, 1), 0)
