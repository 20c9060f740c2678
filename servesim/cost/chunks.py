"""Prefill attention for plain numbers: the form of ``kernels/prefill_attention`` on the hot path."""

from __future__ import annotations

from collections.abc import Sequence

from servesim.cost.gpu import Gpu
from servesim.cost.kernels.floor import KV_BYTES, peak_flops
from servesim.cost.kernels.prefill_attention import BLOCK, PrefillAttention

#: Chunks whose time is remembered; when there are more, all are forgotten.
MOST_REMEMBERED = 2**16


class ChunkAttention:
    """The time of the attention of a step's prefill chunks, in one call per layer, over ``layers`` layers.

    With one chunk it is what :class:`PrefillAttention` says. Several share the multiprocessors: their blocks
    and bytes add up, and the chain of keys is that of the longest. ``shape`` is query heads and KV heads of
    one GPU, and the size of a head.
    """

    def __init__(self, form: PrefillAttention, gpu: Gpu, shape: tuple[int, int, int], layers: int) -> None:
        heads, kv_heads, head_dim = shape
        peak, rate = peak_flops(gpu, form.dtype), gpu.hbm_bytes_per_s
        size = layers * heads * head_dim / BLOCK
        block_s = size * 4 * BLOCK**3 / (form.block_rate * peak)
        kv_bytes = layers * 2 * kv_heads * head_dim * KV_BYTES[form.kv_dtype]
        new_bytes = layers * 4 * head_dim * (heads / form.bandwidth + kv_heads / form.kv_bandwidth)
        self._known: dict[tuple[int, int], tuple[int, float]] = {}
        self.launch_s = layers * form.launch_s
        # With rates of at most the datasheet's, busy time and bytes are above the floor by themselves.
        self._may_be_too_fast = form.block_rate > 1 or form.kv_bandwidth > 1
        # One tuple, as unpacking it is quicker than looking up as many attributes.
        self._coefficients = (
            block_s / BLOCK**2,  # per query-key pair
            block_s / (2 * BLOCK),  # per new token: its half of a block on the diagonal
            size * form.row_s / form.multiprocessors,  # per row of blocks
            layers * form.chain_s,  # per block of keys of the longest chain
            new_bytes / rate,  # per new token
            kv_bytes / (form.kv_bandwidth * rate),  # per token read
            layers * 4 * heads * head_dim / peak,  # per pair, at the least
            kv_bytes / rate,  # per token read, at the least
            form.overlap,
            1 / form.overlap,
        )

    def seconds(self, chunks: Sequence[tuple[int, int]]) -> tuple[int, float]:
        """Return the new tokens of chunks of (new, cached) tokens, at least one, and their time.

        The time is that beyond ``launch_s``; the sum of both is never below the floor of the form. Single
        chunks, which most steps have, are remembered.
        """
        if len(chunks) > 1:
            return self._computed(chunks)
        try:
            return self._known[chunks[0]]
        except KeyError:
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            self._known[chunks[0]] = found = self._computed(chunks)
            return found

    def _computed(self, chunks: Sequence[tuple[int, int]]) -> tuple[int, float]:
        pair_s, diagonal_s, row_s, block_s, new_s, read_s, pair_floor_s, read_floor_s, overlap, root = (
            self._coefficients
        )
        tokens = cached_tokens = rows = longest = 0
        pairs = 0.0
        for new, cached in chunks:
            blocks = (new + 127) // 128
            keys = blocks + (cached + 127) // 128
            if keys > longest:
                longest = keys
            rows += blocks
            tokens += new
            cached_tokens += cached
            pairs += new * (cached + 0.5 * new)
        read = tokens + cached_tokens
        busy_s = pair_s * pairs + diagonal_s * tokens + row_s * rows
        chain_s = block_s * longest
        if busy_s > chain_s:
            seconds = busy_s * (1.0 + (chain_s / busy_s) ** overlap) ** root
        else:
            seconds = chain_s * (1.0 + (busy_s / chain_s) ** overlap) ** root
        seconds += new_s * tokens + read_s * read
        if self._may_be_too_fast:
            floor_s = max(pair_floor_s * pairs, read_floor_s * read) - self.launch_s
            return tokens, max(seconds, floor_s)
        return tokens, seconds
