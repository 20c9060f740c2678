"""The KV blocks of a replica, one by one: how many hold each, which are free, what is in them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

Content = tuple[Hashable, int]
"""What is in a full block: the key of the tokens there, which stands for all before them, and its place."""


class Pool:
    """Blocks by number. The queue of the free ones loses its head first; a block keeps its content there."""

    def __init__(self, blocks: int) -> None:
        self.queue = list(range(blocks))
        self.holders = [0] * blocks
        """How many requests hold each block."""
        self.content: dict[int, Content] = {}
        self.where: dict[Content, int] = {}
        """In which block a content is found: the inverse of ``content``."""
        self.places: dict[Hashable, dict[int, int]] = {}
        """The same by key and place."""

    @property
    def free(self) -> int:
        """Blocks that nobody holds."""
        return len(self.queue)

    def allocate(self, count: int) -> list[int]:
        """Take blocks from the head of the queue; what was in them is lost."""
        assert 0 <= count <= len(self.queue)
        taken, self.queue = self.queue[:count], self.queue[count:]
        for block in taken:
            self.holders[block] = 1
            self.forget(block)
        return taken

    def forget(self, block: int) -> None:
        """Let nobody find a block's content any more."""
        if block in self.content:
            key, place = content = self.content.pop(block)
            del self.where[content]
            del self.places[key][place]

    def give_back(self, blocks: Sequence[int]) -> None:
        """Let go of blocks; those that nobody holds go to the tail of the queue, the last one first."""
        for block in reversed(blocks):
            self.holders[block] -= 1
            if not self.holders[block]:
                self.queue.append(block)

    def fill(self, contents: Sequence[Content], blocks: Sequence[int]) -> None:
        """Note what is in a request's first blocks, up to one whose content somebody else holds a copy of.

        A copy that nobody holds is not found any more, nor what lies behind it under that key.
        """
        for content, block in zip(contents, blocks, strict=False):
            if self.content.get(block) == content:
                continue
            key, place = content
            known = self.places.setdefault(key, {})
            deeper = [other for at, other in known.items() if at >= place]
            if any(self.holders[other] for other in deeper):
                return
            for other in deeper:
                self.forget(other)
            self.content[block] = content
            self.where[content] = known[place] = block

    def find(self, contents: Sequence[Content]) -> list[int]:
        """Return the blocks that hold a sequence's contents, from the first one on without a gap."""
        found: list[int] = []
        for content in contents:
            if content not in self.where:
                break
            found.append(self.where[content])
        return found

    def idle(self, blocks: Sequence[int]) -> int:
        """Count the blocks that nobody holds."""
        return sum(not self.holders[block] for block in blocks)

    def reuse(self, blocks: Sequence[int]) -> None:
        """Hold blocks with what is in them; those in the queue leave it, wherever they stand."""
        for block in blocks:
            self.holders[block] += 1
            if block in self.queue:
                self.queue.remove(block)
