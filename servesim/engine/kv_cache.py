"""The KV cache of one replica: how many blocks are free, and what of a request is in it already."""

from __future__ import annotations

from servesim.engine.leftovers import Leftovers
from servesim.engine.prefix_cache import PrefixCache
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
        in_turn: whether of those who lost what they held the last one comes back first.
        swap: host memory for what preempted requests lose, where there is any.
    """

    __slots__ = ("_caches", "_found", "_reuse", "_shares", "block_size", "blocks", "free", "swap")

    def __init__(
        self,
        blocks: int,
        block_size: int,
        *,
        caches: bool,
        shares: bool = True,
        in_turn: bool = False,
        swap: SwapSpace | None = None,
    ) -> None:
        self.blocks = self.free = blocks
        self.block_size = block_size
        self.swap = swap
        self._caches = caches
        self._shares = shares
        self._found = 0  # blocks of the request that was looked for last
        self._reuse: PrefixCache | Leftovers
        if in_turn and not shares:
            self._reuse = Leftovers(blocks, block_size)
        else:
            self._reuse = PrefixCache(blocks, block_size, shares=shares)

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
        found = self._reuse.find(request, self.free) if self._caches else None
        if found is None:
            if request.swapped:
                self._found = 0
                request.computed = request.swapped
            return request.swapped > 0
        self._found, idle = found
        request.computed = max(self._found * self.block_size, request.swapped)
        request.blocks = self._found - idle
        return True

    def cached_tokens(self, request: Request, free: int) -> int:
        """Return how many tokens of a request are in the cache while ``free`` blocks are free."""
        found = self._reuse.find(request, free) if self._caches else None
        return 0 if found is None else found[0] * self.block_size

    def hold(self, request: Request, *, whole: bool) -> None:
        """Let a request that begins behind what it found hold that, and be found itself.

        ``whole``: all of its prompt is being computed or about to be, and others may find it.
        """
        if self._caches:
            self._reuse.hold(request, self._found)
            if whole and self._shares:
                self.name(request)
            if self._found:
                tokens = self._found * self.block_size
                request.cached_tokens += tokens
                if request.preemptions:
                    request.recovered_tokens += tokens
        if request.swapped and self.swap is not None:
            self.swap.give_back(request, self._found)

    def name(self, request: Request) -> None:
        """Let others find the prompt of a request, all of it being computed or about to be."""
        self._reuse.name(request, (request.input_tokens + request.generated) // self.block_size)

    def give_back(self, blocks: int) -> None:
        """Take back blocks with nothing in them."""
        self.free += blocks
        self._reuse.given += blocks

    def leave(self, request: Request, tokens: int) -> None:
        """Take back the blocks of so many tokens of a request that has ended."""
        if request.may_be_cached:
            self.free += self._reuse.leave(request, tokens)
        else:
            blocks = -(-tokens // self.block_size)
            self.free += blocks
            self._reuse.given += blocks

    def lose(self, request: Request) -> None:
        """Take back the blocks of all that is computed of a request that will come back."""
        if self.swap is not None:
            self.swap.take(request)
        if self._caches:
            self.free += self._reuse.lose(request, request.computed)
        else:
            self.free += -(-request.computed // self.block_size)

    def forget(self, request: Request) -> None:
        """Keep nothing of a request that waits and will not come back."""
        if self.swap is not None:
            self.swap.drop(request)
        self._reuse.forget(request, self.free)

    @property
    def evicted_blocks(self) -> int:
        """How many blocks were lost so far that a prompt could have found."""
        return self._reuse.lost(self.free)
