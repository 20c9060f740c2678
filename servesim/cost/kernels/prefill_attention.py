"""Causal attention of new tokens over themselves and a cached prefix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from servesim.check import quantity
from servesim.cost.gpu import Gpu
from servesim.cost.kernels.floor import KV_BYTES, kernel_floor, peak_flops
from servesim.cost.kernels.smooth import FloatArray, Values, overlapped

BLOCK = 128  # queries and keys of a block of scores, and the head size that times per block are of


@dataclass(frozen=True)
class PrefillAttention:
    """The time of one layer's prefill attention on one GPU.

        t = launch + overlap((blocks / block rate + rows x row time) / multiprocessors, chain x key blocks)
            + bytes of queries and outputs / bandwidth + bytes of keys and values / KV bandwidth

    Scores are computed in blocks of 128 queries x 128 keys: q (q + 1) / 2 causal ones for q blocks of
    queries, and q x p behind p blocks of cached prefix. ``rows`` are rows of blocks (per sequence and head):
    each starts once. A row goes through its keys in order, so the longest is a chain. New keys and values
    are read, written to the cache in its format, and read from it.
    """

    dtype: Literal["bf16", "fp8"] = quantity()
    kv_dtype: Literal["bf16", "fp8"] = quantity()
    multiprocessors: int = quantity(at_least=1)
    launch_s: float = quantity("s", at_least=0)
    block_rate: float = quantity("of the peak FLOP/s", above=0)
    row_s: float = quantity("s per row of blocks, heads of 128", at_least=0)
    chain_s: float = quantity("s per block of keys, one after the other", at_least=0)
    bandwidth: float = quantity("of the HBM bandwidth, queries and outputs", above=0)
    kv_bandwidth: float = quantity("of the HBM bandwidth, keys and values", above=0)
    overlap: float = quantity(at_least=1)

    def seconds(
        self,
        gpu: Gpu,
        batch: Values,
        heads: Values,
        kv_heads: Values,
        head_dim: Values,
        length: Values,
        *,
        prefix: Values = 0,
        window: Values = 0,
    ) -> FloatArray:
        """Return the time in seconds of ``batch`` sequences of ``length`` tokens behind ``prefix`` cached.

        Heads are those of one GPU. A ``window`` above 0 bounds the keys of each query.
        """
        batch, heads, kv_heads, head_dim = (np.asarray(x, float) for x in (batch, heads, kv_heads, head_dim))
        new, cached = np.asarray(length, float), np.asarray(prefix, float)
        reach = np.where(np.asarray(window) > 0, window, np.inf).astype(float)
        pairs = _area(cached + new, reach) - _area(cached, reach)
        peak = peak_flops(gpu, self.dtype)
        work = batch * heads * head_dim / BLOCK * self._scores(peak, pairs, new)
        keys = np.minimum(np.ceil(new / BLOCK) + np.ceil(cached / BLOCK), np.ceil(reach / BLOCK) + 1)
        kv_bytes = 2 * batch * np.minimum(new + cached, new + reach) * kv_heads * head_dim
        kv_bytes = kv_bytes * KV_BYTES[self.kv_dtype]
        moved = 4 * batch * new * head_dim * heads / self.bandwidth
        moved = moved + (4 * batch * new * head_dim * kv_heads + kv_bytes) / self.kv_bandwidth
        form: FloatArray = self.launch_s + overlapped(work, keys * self.chain_s, self.overlap)
        form = form + moved / gpu.hbm_bytes_per_s
        flops = 4 * batch * heads * head_dim * pairs
        return np.maximum(form, kernel_floor(gpu, flops, peak, kv_bytes))

    def _scores(self, peak: float, pairs: FloatArray, new: FloatArray) -> FloatArray:
        """Return the time of one head of 128: its blocks, those on the diagonal whole, and their rows."""
        blocks = pairs / BLOCK**2 + new / BLOCK / 2
        starts = np.ceil(new / BLOCK) * self.row_s / self.multiprocessors
        return np.asarray(blocks * (4 * BLOCK**3 / (self.block_rate * peak)) + starts)


def _area(position: FloatArray, reach: FloatArray) -> FloatArray:
    """Return the query-key pairs of all positions up to this one, each seeing at most ``reach`` keys."""
    inside = np.minimum(position, reach)
    outside = np.where(np.isinf(reach), 0, position - inside)
    return np.asarray(inside**2 / 2 + np.where(np.isinf(reach), 0, reach) * outside)
