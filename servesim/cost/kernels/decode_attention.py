"""Attention of one new token per sequence over its KV cache."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from servesim.check import LEAST_FACTOR, MOST_BYTES, MOST_FACTOR, MOST_S, quantity
from servesim.cost.gpu import Gpu
from servesim.cost.kernels.floor import KV_BYTES, kernel_floor
from servesim.cost.kernels.smooth import FloatArray, Values, overlapped

HEAD_DIM = 128  # the head size that ``wave_s`` is of
CACHE_EDGE = 0.12  # how gradually KV stops fitting the cache, in cache sizes


@dataclass(frozen=True)
class DecodeAttention:
    """The time of one layer's decode attention on one GPU: grouped queries over a paged KV cache.

        t = launch + split x log2(1 + L / 256) + overlap(waves x wave time, KV bytes / bandwidth)

    A wave is one (sequence, KV head) per multiprocessor and costs its time whatever the length; the
    logarithm is the combining of the parts that long sequences are split into. The bandwidth is at most
    ``stream_bandwidth`` per (sequence, KV head). KV that fits the L2 cache moves at ``cache_bandwidth`` in a
    benchmark that reads the same KV again and again (``resident``); in a server every layer's KV pushes
    out the one before, and all of it comes from HBM.
    """

    kv_dtype: Literal["bf16", "fp8"] = quantity()
    multiprocessors: int = quantity(at_least=1, at_most=MOST_FACTOR)
    launch_s: float = quantity("s", at_least=0, at_most=MOST_S)
    split_s: float = quantity("s per doubling of the length", at_least=0, at_most=MOST_S)
    wave_s: float = quantity("s per wave, heads of 128", at_least=0, at_most=MOST_S)
    bandwidth: float = quantity("of the HBM bandwidth", at_least=LEAST_FACTOR, at_most=MOST_FACTOR)
    stream_bandwidth: float = quantity(
        "of the HBM bandwidth, one sequence and KV head", at_least=LEAST_FACTOR, at_most=MOST_FACTOR
    )
    overlap: float = quantity(at_least=1, at_most=MOST_FACTOR)
    cache_bytes: float = quantity("bytes", above=0, at_most=MOST_BYTES)
    cache_bandwidth: float = quantity("of the HBM bandwidth", at_least=LEAST_FACTOR, at_most=MOST_FACTOR)

    def seconds(
        self,
        gpu: Gpu,
        batch: Values,
        heads: Values,
        kv_heads: Values,
        head_dim: Values,
        length: Values,
        *,
        window: Values = 0,
        resident: bool = False,
    ) -> FloatArray:
        """Return the time in seconds of ``batch`` sequences with ``length`` KV tokens each.

        Heads are those of one GPU. A ``window`` above 0 bounds the tokens read. Lengths may be a mean:
        but for the logarithm the time depends on their sum.
        """
        batch, heads, kv_heads, head_dim = (np.asarray(x, float) for x in (batch, heads, kv_heads, head_dim))
        read = np.where(np.asarray(window) > 0, np.minimum(length, window), length).astype(float)
        streams = batch * kv_heads
        kv_bytes = 2 * streams * read * head_dim * KV_BYTES[self.kv_dtype]
        waves = streams / self.multiprocessors * self.wave_s * head_dim / HEAD_DIM
        moved = self._move(gpu, kv_bytes, streams, resident)
        form = self.launch_s + self.split_s * np.log2(1 + read / 256) + overlapped(waves, moved, self.overlap)
        flops = 4 * batch * heads * read * head_dim
        return np.maximum(form, kernel_floor(gpu, flops, gpu.bf16_flops_per_s, 0 if resident else kv_bytes))

    def _move(self, gpu: Gpu, kv_bytes: FloatArray, streams: FloatArray, resident: bool) -> FloatArray:
        """Return the time in which the KV is read."""
        limit = self.stream_bandwidth * streams
        from_hbm = kv_bytes / (np.minimum(self.bandwidth, limit) * gpu.hbm_bytes_per_s)
        if not resident:
            return from_hbm
        edge = (self.cache_bytes - kv_bytes) / (CACHE_EDGE * self.cache_bytes)
        share = 1 / (1 + np.exp(-np.clip(edge, -50, 50)))
        from_cache = kv_bytes / (np.minimum(self.cache_bandwidth, limit) * gpu.hbm_bytes_per_s)
        return share * from_cache + (1 - share) * from_hbm
