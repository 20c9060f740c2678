"""Prefill attention for plain numbers: the form of ``kernels/prefill_attention`` on the hot path."""

from __future__ import annotations

from collections.abc import Sequence

from servesim.cost.gpu import Gpu
from servesim.cost.kernels.floor import KV_BYTES, peak_flops
from servesim.cost.kernels.prefill_attention import BLOCK, SHORT, PrefillAttention

#: Chunks whose time is remembered; when there are more, all are forgotten.
MOST_REMEMBERED = 2**16


class ChunkAttention:
    """The time of the attention of a step's prefill chunks, in one call per layer, over ``layers`` layers.

    With one chunk it is what :class:`PrefillAttention` says. Several share the multiprocessors: their tiles
    and bytes add up, the chain of keys is that of the longest, and tiles are short where all are. ``shape``
    is query heads and KV heads of one GPU, and the size of a head.
    """

    def __init__(self, form: PrefillAttention, gpu: Gpu, shape: tuple[int, int, int], layers: int) -> None:
        heads, kv_heads, head_dim = shape
        peak, rate = peak_flops(gpu, form.dtype), gpu.hbm_bytes_per_s
        size = layers * head_dim / BLOCK
        kv_bytes = layers * 2 * kv_heads * head_dim * KV_BYTES[form.kv_dtype]
        new_bytes = layers * 4 * head_dim * (heads / form.bandwidth + kv_heads / form.kv_bandwidth)
        always = form.packing == "always"
        self._known: dict[tuple[int, int], tuple[int, float]] = {}
        self.launch_s = layers * form.launch_s
        # With rates of at most the datasheet's, busy time and bytes are above the floor by themselves.
        self._may_be_too_fast = (
            max(form.block_rate, form.kv_bandwidth, form.block_rate / 2 / form.short_tile) > 1
        )
        # One tuple, as unpacking it is quicker than looking up as many attributes.
        self._coefficients = (
            float(kv_heads if always else heads),  # least tiles of a chunk
            float(heads if form.packing == "never" else kv_heads),  # the same of one new token
            heads / BLOCK,  # tiles per new token
            size * form.tile_s / form.multiprocessors,  # per tile
            size * 4 * BLOCK**2 / (form.block_rate * peak),  # per key of a tile
            layers * form.tile_s,  # the start of a chain
            layers * form.chain_s,  # per block of keys of the longest chain
            SHORT * kv_heads // heads if always else SHORT,  # new tokens up to which tiles are short
            1.0 - form.short_tile,  # what their start and first block take less
            new_bytes / rate + layers * form.token_s,  # per new token
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
        (
            least_tiles, single_tiles, tiles_per_token, tile_s, key_s, start_s, block_s, short,
            saved, new_s, read_s, pair_floor_s, read_floor_s, overlap, root,
        ) = self._coefficients  # fmt: skip
        tokens = cached_tokens = longest = short_chunks = 0
        pairs = further_tiles = further_keys = 0.0
        for new, cached in chunks:
            keys = (new + 127) // 128 + (cached + 127) // 128
            if keys > longest:
                longest = keys
            tokens += new
            cached_tokens += cached
            pairs += new * (cached + 0.5 * new)
            if new < 128:  # tiles are not full, or see less than a block of keys
                if new <= short:
                    short_chunks += 1
                full_tiles = new * tiles_per_token
                all_tiles = max(full_tiles, least_tiles if new > 1 else single_tiles)
                seen = cached + 0.5 * new + 64.0
                further_tiles += all_tiles - full_tiles
                further_keys += all_tiles * max(seen, 128.0) - full_tiles * seen
        read = tokens + cached_tokens
        tiles = tiles_per_token * tokens + further_tiles
        busy_s = tile_s * tiles + key_s * (tiles_per_token * (pairs + 64.0 * tokens) + further_keys)
        chain_s = start_s + block_s * longest
        if short_chunks == len(chunks):
            busy_s -= saved * (tile_s + 128.0 * key_s) * tiles
            chain_s -= saved * (start_s + block_s)
        if busy_s > chain_s:
            seconds = busy_s * (1.0 + (chain_s / busy_s) ** overlap) ** root
        else:
            seconds = chain_s * (1.0 + (busy_s / chain_s) ** overlap) ** root
        seconds += new_s * tokens + read_s * read
        if self._may_be_too_fast:
            floor_s = max(pair_floor_s * pairs, read_floor_s * read) - self.launch_s
            return tokens, max(seconds, floor_s)
        return tokens, seconds
