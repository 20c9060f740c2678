"""The KV cache of one replica: how many blocks are free, and what of a request is in it already."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from servesim.engine.prefix_cache import Piece, PrefixCache
from servesim.engine.swap_space import SwapSpace
from servesim.workload.origin import ANYWHERE
from servesim.workload.request import Request


class KvCache:
    """Blocks of ``block_size`` tokens, of which ``free`` are held by nobody.

    Whoever takes blocks has asked before whether they are free, and takes them off ``free``.

    Args:
        blocks: KV blocks of the replica.
        block_size: tokens of a block.
        caches: whether content is found again (``enable_prefix_caching``).
        shares: whether by other requests, too.
        swap: host memory for what preempted requests lose, where there is any.
    """

    __slots__ = ("_caches", "_found", "_prefixes", "block_size", "blocks", "free", "swap")

    def __init__(
        self,
        blocks: int,
        block_size: int,
        *,
        caches: bool,
        shares: bool = True,
        swap: SwapSpace | None = None,
    ) -> None:
        self.blocks = self.free = blocks
        self.block_size = block_size
        self.swap = swap
        self._caches = caches
        self._found = 0  # blocks of the request that was looked for last
        self._prefixes = PrefixCache(blocks, block_size, shares=shares)

    def short(self, request: Request, tokens: int) -> int:
        """Return the blocks that ``tokens`` more tokens of a request take beyond those it has."""
        return -(-(request.computed + tokens) // self.block_size) - request.blocks

    def least(self, request: Request, budget: int) -> int:
        """Return the fewest free blocks that a waiting request takes in a step, whatever it finds.

        Its last token is always computed, in a block of its own. Of one that shares nothing nobody else holds
        anything, so what it finds takes free blocks, too.
        """
        if request.blocks:
            return 0  # room has been reserved for it
        if request.origin is not ANYWHERE:
            return 1
        tokens = request.input_tokens + request.generated
        return -(-(tokens if tokens < budget else budget) // self.block_size)

    def find(self, request: Request) -> bool:
        """Let a waiting request begin behind what is in the cache or swapped out; say whether any may be.

        Its blocks that others hold count as its own, so that :meth:`short` tells those it needs beside.
        """
        if not (self._caches and self._prefixes.may_find(request)):
            if request.swapped:
                self._found = 0
                request.computed = request.swapped
            return request.swapped > 0
        self._found, idle = self._prefixes.find(request, self.free)
        request.computed = max(self._found * self.block_size, request.swapped)
        request.blocks = self._found - idle
        return True

    def cached_tokens(self, request: Request, free: int) -> int:
        """Return how many tokens of a request are in the cache while ``free`` blocks are free."""
        if not self._caches or not self._prefixes.may_find(request):
            return 0
        return self._prefixes.find(request, free)[0] * self.block_size

    def hold(self, request: Request) -> None:
        """Let a request that begins behind what it found hold that, and be found itself."""
        if self._caches:
            self._prefixes.hold(request, self._found)
            if self._found:
                tokens = self._found * self.block_size
                request.cached_tokens += tokens
                if request.preemptions:
                    request.recovered_tokens += tokens
        if request.swapped and self.swap is not None:
            self.swap.give_back(request, self._found)

    def name(self, request: Request) -> None:
        """Let others find the prompt of a request, all of it being computed or about to be."""
        if request in self._prefixes.holds:
            self._prefixes.name(request, (request.input_tokens + request.generated) // self.block_size)

    def leave(self, request: Request, tokens: int, spare: int = 0) -> None:
        """Take the blocks of so many tokens from a request that has ended, and ``spare`` ones."""
        prefixes = self._prefixes
        if spare:
            self.free += spare
            prefixes.given += spare
        if request.may_be_cached and request in prefixes.holds:
            self.free += prefixes.release(request, tokens, ends=True)
        else:
            blocks = -(-tokens // self.block_size)
            self.free += blocks
            prefixes.given += blocks

    def lose(self, request: Request, spare: int = 0) -> None:
        """Take the blocks of all that is computed from a request that will come back, and ``spare`` ones."""
        self.free += spare
        self._prefixes.given += spare
        if self.swap is not None:
            self.swap.take(request)
        if self._caches:
            if request not in self._prefixes.holds:
                self._prefixes.hold(request, 0)
            self.free += self._prefixes.release(request, request.computed, ends=False)
        else:
            self.free += -(-request.computed // self.block_size)

    def forget(self, request: Request) -> None:
        """Keep nothing of a request that waits and will not come back."""
        if self.swap is not None:
            self.swap.drop(request)
        self._prefixes.forget_own(request)

    @property
    def evicted_blocks(self) -> int:
        """How many blocks were lost so far that a prompt could have found."""
        self._prefixes.evict(self.free)
        return self._prefixes.evicted

    # ---- tiers behind it ----------------------------------------------------------------------------

    def offload(
        self,
        on_loss: Callable[[Hashable, int, int], None],
        on_rewrite: Callable[[Hashable, int], None],
    ) -> None:
        """Tell somebody which findable blocks of a key are lost, and from where on a key is written anew."""
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
