"""One direction of a link that copies KV blocks, one copy after the other."""

from __future__ import annotations


class Copies:
    """Copies of blocks over a link, first come, first served.

    Args:
        block_s: seconds per block.
        latency_s: seconds before the first byte of a copy; the link is not busy meanwhile.
    """

    __slots__ = ("_block_s", "_busy_until_s", "_latency_s", "blocks", "busy_s")

    def __init__(self, block_s: float, latency_s: float) -> None:
        self._block_s = block_s
        self._latency_s = latency_s
        self._busy_until_s = 0.0
        self.blocks = 0
        self.busy_s = 0.0

    def order(self, blocks: int, now: float) -> float:
        """Order a copy of so many blocks; return when its last byte is there."""
        seconds = blocks * self._block_s
        self._busy_until_s = max(self._busy_until_s, now) + seconds
        self.blocks += blocks
        self.busy_s += seconds
        return self._busy_until_s + self._latency_s

    def forget(self) -> None:
        """Begin anew at time 0, with nothing under way and nothing counted."""
        self._busy_until_s = self.busy_s = 0.0
        self.blocks = 0
