"""What is left of preempted requests in free KV blocks, where no two requests have anything in common."""

from __future__ import annotations

from servesim.workload.request import Request


class Leftovers:
    """The content of one replica's free KV blocks, as far as the preempted may still want it.

    It is what :class:`~servesim.engine.prefix_cache.PrefixCache` comes to where nothing is shared, at a
    fraction of the cost. Think of the queue of free blocks as of a tape on which every block given back is
    written behind the one before, blocks that never held anything first: it ends at ``given``, the blocks
    ever given back, and begins at ``given`` less the blocks that are free, as many have ever been taken from
    the head. A preempted request's full blocks are a stretch of that tape, its first block last; what is left
    of it is what lies behind the head.

    Blocks taken out of the middle would leave holes; but the last request preempted must be the first to be
    scheduled again, so that no stretch lies behind a hole, and the tape can be pulled together.
    """

    __slots__ = ("_block_size", "_evicted", "_kept", "given")

    def __init__(self, kv_blocks: int, block_size: int) -> None:
        #: blocks on the tape: those that never held anything, and those given back, less those reused
        self.given = kv_blocks
        self._block_size = block_size
        #: (end, length) in blocks of the stretch of each request that waits to be scheduled again
        self._kept: dict[Request, tuple[int, int]] = {}
        #: blocks of stretches that are gone, where others had been put in their place
        self._evicted = 0

    def find(self, request: Request, free_blocks: int) -> tuple[int, int] | None:
        """Return how many blocks of a request are left, all of them held by nobody; None: it left nothing."""
        stretch = self._kept.get(request)
        if stretch is None:
            return None
        end, length = stretch  # as _left has it, without a call
        left = end - self.given + free_blocks
        left = 0 if left < 0 else length if left > length else left
        return left, left

    def hold(self, request: Request, blocks: int) -> None:
        """Let a request hold its first ``blocks`` blocks, all that is left of it; last in, first out."""
        stretch = self._kept.pop(request, None)
        if stretch is not None:
            self.given -= blocks
            self._evicted += stretch[1] - blocks

    def name(self, request: Request, blocks: int) -> None:
        """Let others find a request's first ``blocks`` blocks; none of them will look."""

    def leave(self, request: Request, tokens: int) -> int:
        """Let go of the blocks of so many tokens of a request that has ended; return how many they are."""
        blocks = -(-tokens // self._block_size)
        self.given += blocks
        return blocks

    def lose(self, request: Request, tokens: int) -> int:
        """Let go of the blocks of so many tokens of a request that will come back; return how many."""
        blocks = -(-tokens // self._block_size)
        self.given += blocks
        self._kept[request] = self.given, tokens // self._block_size
        return blocks

    def forget(self, request: Request, free_blocks: int) -> None:
        """Keep nothing of a request that waits: it will not come back."""
        if request in self._kept:
            end, length = self._kept.pop(request)
            self._evicted += length - self._left(end, length, free_blocks)

    def lost(self, free_blocks: int) -> int:
        """Return how many blocks were lost so far that a request could have found."""
        return self._evicted + sum(
            length - self._left(end, length, free_blocks) for end, length in self._kept.values()
        )

    def _left(self, end: int, length: int, free_blocks: int) -> int:
        """Return how many blocks of a stretch lie behind the head of the tape."""
        return max(min(end - self.given + free_blocks, length), 0)
