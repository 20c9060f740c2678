"""The KV blocks of a replica, one by one: which are free, in which order they go, and what is in them."""

from __future__ import annotations

Content = tuple[int, int]
"""What is in a full block: the block of this request with this place, from 0."""


class Pool:
    """Blocks by number. The queue of the free ones loses its head first; a block keeps its content there."""

    def __init__(self, blocks: int) -> None:
        self.queue = list(range(blocks))
        self.content: dict[int, Content] = {}
        self.holders: dict[Content, int] = {}
        """In which block a content is: the inverse of ``content``."""

    @property
    def free(self) -> int:
        """Blocks that nobody holds."""
        return len(self.queue)

    def allocate(self, count: int) -> list[int]:
        """Take blocks from the head of the queue; what was in them is lost."""
        assert 0 <= count <= len(self.queue)
        taken, self.queue = self.queue[:count], self.queue[count:]
        for block in taken:
            if block in self.content:
                del self.holders[self.content.pop(block)]
        return taken

    def give_back(self, blocks: list[int]) -> None:
        """Put a request's blocks at the tail of the queue, its last one first."""
        self.queue.extend(reversed(blocks))

    def fill(self, request: int, blocks: list[int], full: int) -> None:
        """Note what is in the full blocks of a request; nothing is in two blocks at once."""
        for place, block in enumerate(blocks[:full]):
            assert self.holders.get((request, place), block) == block
            self.content[block] = (request, place)
            self.holders[request, place] = block

    def find(self, request: int, most: int) -> list[int]:
        """Return the blocks that hold a request's blocks 0, 1, 2 and so on, at most so many."""
        found: list[int] = []
        while len(found) < most and (request, len(found)) in self.holders:
            found.append(self.holders[request, len(found)])
        return found

    def reuse(self, blocks: list[int]) -> None:
        """Take blocks out of the queue, wherever they stand, with what is in them."""
        for block in blocks:
            self.queue.remove(block)
