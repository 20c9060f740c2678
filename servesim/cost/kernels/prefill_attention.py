"""Causal attention of new tokens over themselves and a cached prefix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from servesim.check import LEAST_FACTOR, MOST_FACTOR, MOST_S, quantity
from servesim.cost.gpu import Gpu
from servesim.cost.kernels.floor import KV_BYTES, kernel_floor, peak_flops
from servesim.cost.kernels.smooth import FloatArray, Values, overlapped

BLOCK = 128  # queries and keys of a block of scores, and the head size that times per tile are of
SHORT = 64  # queries of a tile that is set up for fewer


@dataclass(frozen=True)
class PrefillAttention:
    """The time of one layer's prefill attention on one GPU.

        t = launch + overlap(tiles x tile time / multiprocessors, tile + key blocks x chain)
            + tokens x token + bytes of queries and outputs / bandwidth
            + bytes of keys and values / KV bandwidth

    A *tile* is up to 128 queries, which go through their keys in blocks of 128. Of n new tokens behind p
    cached ones it takes tile + (p + n / 2 + 64) / 128 blocks / block rate, of at least one block: causal
    queries see half of the new keys, and half a block more. The longest sequence's last tile is a chain.
    ``packing`` says whether the queries of all heads that share a KV head are packed into one tile: always
    (FlashAttention 3, FlashInfer), if there is one new token (FlashAttention 2, which then decodes), or
    never (TensorRT-LLM). Where a sequence has at most 64 queries to pack, tiles start and compute their
    first block in ``short_tile`` of the time. Each new token has a block of threads that writes its keys
    and values to the cache, and for an FP8 cache one that quantises its queries.

    With packing, more KV heads among the same query heads may take less: fewer queries share a tile.
    """

    dtype: Literal["bf16", "fp8"] = quantity()
    kv_dtype: Literal["bf16", "fp8"] = quantity()
    multiprocessors: int = quantity(at_least=1, at_most=MOST_FACTOR)
    launch_s: float = quantity("s", at_least=0, at_most=MOST_S)
    block_rate: float = quantity("of the peak FLOP/s", at_least=LEAST_FACTOR, at_most=MOST_FACTOR)
    tile_s: float = quantity("s per tile, heads of 128", at_least=0, at_most=MOST_S)
    chain_s: float = quantity("s per block of keys, one after the other", at_least=0, at_most=MOST_S)
    bandwidth: float = quantity(
        "of the HBM bandwidth, queries and outputs", at_least=LEAST_FACTOR, at_most=MOST_FACTOR
    )
    kv_bandwidth: float = quantity(
        "of the HBM bandwidth, keys and values", at_least=LEAST_FACTOR, at_most=MOST_FACTOR
    )
    overlap: float = quantity(at_least=1, at_most=MOST_FACTOR)
    token_s: float = quantity("s per new token", at_least=0, at_most=MOST_S, default=0.0)
    short_tile: float = quantity(
        "start and first block of a tile of at most 64 queries", above=0, at_most=1, default=1.0
    )
    packing: Literal["always", "single", "never"] = quantity(default="never")

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
        tiles = batch * np.maximum(np.where(self._packed(new), kv_heads, heads), heads * new / BLOCK)
        queries = new * heads / kv_heads if self.packing == "always" else new
        first = np.where(queries <= SHORT, self.short_tile, 1.0)
        work = tiles * self._tile(peak, pairs / new, first) * head_dim / BLOCK
        keys = np.minimum(np.ceil(new / BLOCK) + np.ceil(cached / BLOCK), np.ceil(reach / BLOCK) + 1)
        kv_bytes = 2 * batch * np.minimum(new + cached, new + reach) * kv_heads * head_dim
        kv_bytes = kv_bytes * KV_BYTES[self.kv_dtype]
        moved = 4 * batch * new * head_dim * heads / self.bandwidth
        moved = moved + (4 * batch * new * head_dim * kv_heads + kv_bytes) / self.kv_bandwidth
        chain = first * (self.tile_s + self.chain_s) + (keys - 1) * self.chain_s
        form: FloatArray = self.launch_s + overlapped(work, chain, self.overlap)
        form = form + batch * new * self.token_s + moved / gpu.hbm_bytes_per_s
        flops = 4 * batch * heads * head_dim * pairs
        return np.maximum(form, kernel_floor(gpu, flops, peak, kv_bytes))

    def _packed(self, new: FloatArray) -> NDArray[np.bool_]:
        """Tell whether the heads that share a KV head share tiles."""
        packed = new <= 1 if self.packing == "single" else np.bool_(self.packing == "always")
        return np.asarray(packed, dtype=np.bool_)

    def _tile(self, peak: float, keys: FloatArray, first: FloatArray) -> FloatArray:
        """Return the time of a tile of heads of 128 whose queries see this many keys on average.

        ``first`` is a factor on its start and its first block.
        """
        block_s = 4 * BLOCK**3 / (self.block_rate * peak)
        further = np.maximum((keys + BLOCK / 2) / BLOCK - 1, 0)
        return np.asarray(first * (self.tile_s / self.multiprocessors + block_s) + further * block_s)


def _area(position: FloatArray, reach: FloatArray) -> FloatArray:
    """Return the query-key pairs of all positions up to this one, each seeing at most ``reach`` keys."""
    inside = np.minimum(position, reach)
    outside = np.where(np.isinf(reach), 0, position - inside)
    return np.asarray(inside**2 / 2 + np.where(np.isinf(reach), 0, reach) * outside)
