"""Blocks of KV that one key stands for, and runs of them in the queue of free blocks."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable


class Span:
    """The blocks of one key that are in the cache, by their places in a sequence: ``first`` up to ``cached``.

    Who holds some of them holds them from the first one on, so those held by anybody are ``first`` up to
    ``held``. The others are ``idle`` in the queue of free blocks, as stretches, the last blocks first. Who
    lets go of a block has let go of those behind it before, or puts them in front of it; so what is lost
    first is the end of a span, and what is left has no gap.
    """

    __slots__ = ("cached", "ends", "first", "held", "idle", "key")

    def __init__(self, key: Hashable, first: int) -> None:
        self.key = key
        self.first = self.held = self.cached = first
        self.idle: deque[Stretch] = deque()
        #: where the blocks end that requests hold: how many there are, by end
        self.ends: dict[int, int] = {}

    @property
    def is_empty(self) -> bool:
        """Say whether nothing is left of it."""
        return self.cached == self.first and not self.ends

    def join(self, end: int) -> None:
        """Let one more request hold the blocks before ``end``."""
        self.ends[end] = self.ends.get(end, 0) + 1
        if end > self.held:
            self.held = end

    def leave(self, end: int) -> None:
        """Let one request less hold the blocks before ``end``."""
        if self.ends[end] > 1:
            self.ends[end] -= 1
            return
        del self.ends[end]
        if end == self.held:
            self.held = max(self.ends, default=self.first)


class Stretch:
    """Blocks that stand together in the queue: first ``blank`` ones, then ``high`` - 1 down to ``low``."""

    __slots__ = ("blank", "high", "low", "span")

    def __init__(self, span: Span, low: int, high: int, blank: int) -> None:
        self.span = span
        self.low = low
        self.high = high
        self.blank = blank

    def shrink(self, blocks: int) -> int:
        """Lose blocks at the head, at most so many; return how many these were."""
        blank = min(blocks, self.blank)
        self.blank -= blank
        named = min(blocks - blank, self.high - self.low)
        if named:
            self.high -= named
            self.span.cached = self.high
        return blank + named
