"""Prefix caching: what is left in free KV blocks of requests that lost them."""

from __future__ import annotations

from servesim.workload.request import Request


class PrefixCache:
    """The free queue of one replica's KV blocks, as far as somebody may still want what is in them.

    As in vLLM V1 (vllm/v1/core/block_pool.py) free blocks stand in one queue. Whoever needs a block takes
    it from the head, and its content is lost; blocks given back go to the tail, a request's last block
    first, so that its beginning is lost last; and a request that is scheduled again takes the full blocks
    that are left of its own out of the middle.

    No block is kept here. Think of the queue as of a tape on which every block given back is written behind
    the one before, blocks that never held anything first: it ends at ``given``, the blocks ever given back,
    and begins at ``given`` less the blocks that are free, as many have ever been taken from the head. A
    preempted request's full blocks are a stretch of that tape: its end and its length are all that is
    remembered, and what is left of it is what lies behind the head. So a request that is never preempted
    costs one addition, when it gives its blocks back.

    Blocks taken out of the middle would leave holes; but the last request preempted is the first to be
    scheduled again, so that no stretch lies behind a hole, and the tape can be pulled together.
    """

    __slots__ = ("given", "kept")

    def __init__(self, kv_blocks: int) -> None:
        #: blocks on the tape: those that never held anything, and those given back, less those reused
        self.given = kv_blocks
        #: (end, length) of the stretch of each request that waits to be scheduled again, in blocks
        self.kept: dict[Request, tuple[int, int]] = {}

    def keep(self, request: Request, full_blocks: int) -> None:
        """Remember a request that has just given its blocks back, so many of them full."""
        self.kept[request] = (self.given, full_blocks)

    def left(self, request: Request, free_blocks: int) -> int:
        """Return how many blocks from its first one on a kept request would find again."""
        end, length = self.kept[request]
        return max(min(end - self.given + free_blocks, length), 0)

    def take(self, request: Request, blocks: int) -> None:
        """Take what is left of a kept request's blocks off the tape; the most recent one comes first."""
        del self.kept[request]
        self.given -= blocks
