"""The tiers behind one replica's GPUs: what they are given, what they hold, what they are asked for."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from servesim.engine.copies import Copies
from servesim.engine.prefix_cache import Piece
from servesim.engine.tier import Tier


class Shelf:
    """A tier and the link of one replica to it."""

    __slots__ = ("loads", "tier", "writes")

    def __init__(self, tier: Tier, loads: Copies, writes: Copies) -> None:
        self.tier = tier
        self.loads = loads
        self.writes = writes


class Part(NamedTuple):
    """Blocks ``low`` up to ``high`` of a key on a shelf."""

    shelf: Shelf
    key: Hashable
    low: int
    high: int


class Tiers:
    """The shelves of one replica, the nearest one first.

    Copies to a shelf are readable when they have been written. They do not hold up whoever takes the blocks
    on the GPU: engines write ahead of need, or keep a block until it has been read.
    """

    def __init__(self, shelves: Sequence[Shelf]) -> None:
        self.shelves = tuple(shelves)

    def write(self, key: Hashable, low: int, high: int, now: float, level: int = 0) -> None:
        """Write what one level loses to the next one, and so on; what is there already is only used."""
        if level == len(self.shelves):
            return
        shelf = self.shelves[level]
        tier, kept = shelf.tier, min(high, low + shelf.tier.blocks)
        if kept < high:
            self.write(key, kept, high, now, level + 1)
        tier.touch(key, low, kept)
        for begin, end in reversed(tier.gaps(key, low, kept)):
            for lost in tier.make_room(end - begin):
                self.write(*lost, now, level + 1)
            tier.put(key, begin, end, shelf.writes.order(end - begin, now))

    def look(self, pieces: Sequence[Piece], begin: int, limit: int, now: float) -> list[Part]:
        """Return where a sequence goes on from a block on, up to a limit, without a gap."""
        parts: list[Part] = []
        for key, first, stop in pieces:
            if stop <= begin or first > begin:
                continue
            end = min(stop, limit)
            while begin < end and (part := self._next(key, begin, end, now)):
                parts.append(part)
                begin = part.high
            if begin < stop:
                break
        return parts

    def _next(self, key: Hashable, begin: int, end: float, now: float) -> Part | None:
        """Return where the next blocks of a key are, on the nearest shelf that has them."""
        for shelf in self.shelves:
            high = shelf.tier.reaches(key, begin, end, now)
            if high > begin:
                return Part(shelf, key, begin, high)
        return None

    def load(self, parts: Sequence[Part], now: float) -> float:
        """Order copies to the GPU; return when the last one has landed."""
        landed_s = now
        for shelf in self.shelves:
            blocks = sum(part.high - part.low for part in parts if part.shelf is shelf)
            if blocks:
                landed_s = max(landed_s, shelf.loads.order(blocks, now))
        for part in reversed(parts):
            part.shelf.tier.touch(part.key, part.low, part.high)
        return landed_s

    def forget(self, key: Hashable, begin: int) -> None:
        """Lose what is held of a key from a block on."""
        for shelf in self.shelves:
            shelf.tier.forget(key, begin)
