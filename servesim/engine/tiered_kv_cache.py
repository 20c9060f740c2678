"""The KV cache of a replica that has other memories behind it."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from servesim.engine.kv_cache import KvCache
from servesim.engine.prefix_cache import Piece, PrefixCache
from servesim.engine.swap_space import SwapSpace
from servesim.workload.request import Request


class TieredKvCache(KvCache):
    """A KV cache that tells somebody what it loses, so that it may be kept elsewhere.

    Args:
        blocks: KV blocks of the replica.
        block_size: tokens of a block.
        caches: whether content is found again (``enable_prefix_caching``).
        swap: host memory for what preempted requests lose, where there is any.
        on_loss: called with each run of findable blocks (key, first, behind the last) that is lost.
        on_rewrite: called with a key and the block from which on it is written anew.
    """

    __slots__ = ("_prefixes",)

    def __init__(
        self,
        blocks: int,
        block_size: int,
        *,
        caches: bool,
        swap: SwapSpace | None,
        on_loss: Callable[[Hashable, int, int], None],
        on_rewrite: Callable[[Hashable, int], None],
    ) -> None:
        super().__init__(blocks, block_size, caches=caches, swap=swap)
        self._prefixes = self._reuse = PrefixCache(blocks, block_size, shares=True)
        self._prefixes.on_loss, self._prefixes.on_rewrite = on_loss, on_rewrite

    @property
    def may_lose(self) -> bool:
        """Whether there is anything to be found in free blocks."""
        return self._prefixes.has_idle

    def evict(self, growth: int = 0) -> None:
        """Lose what was in the blocks taken so far, and in so many more."""
        self._prefixes.evict(self.free - growth)

    def beyond(self, request: Request, tokens: int) -> tuple[list[Piece], int, int]:
        """Return a request's pieces, the block behind its first ``tokens``, and the first never found."""
        limit = (request.input_tokens + request.generated - 1) // self.block_size
        return self._prefixes.pieces(request), tokens // self.block_size, limit

    def name_loaded(self, request: Request) -> None:
        """Let others find what has been loaded of a request."""
        self._prefixes.name(request, request.computed // self.block_size, loaded=True)
