"""Blocks of KV in a memory beside the GPU's, as runs of them per key."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from math import inf


class Run:
    """Blocks ``low`` up to ``high`` of a key, readable from ``ready_s`` on."""

    __slots__ = ("high", "key", "low", "ready_s")

    def __init__(self, key: Hashable, low: int, high: int, ready_s: float) -> None:
        self.key = key
        self.low = low
        self.high = high
        self.ready_s = ready_s


class Tier:
    """A memory of so many ``blocks`` that forgets the least recently used runs, each from its end.

    The runs of a key do not overlap; what comes to lie beside another run of its key becomes part of it,
    and is readable when the last of it has been written. No block is kept by itself.
    """

    def __init__(self, blocks: int) -> None:
        self.blocks = blocks
        self.used = 0
        self._runs: dict[Hashable, list[Run]] = {}
        self._order: OrderedDict[Run, None] = OrderedDict()

    def reaches(self, key: Hashable, first: int, stop: float, now: float) -> int:
        """Return up to where blocks of a key are readable from ``first`` on without a gap."""
        for run in self._runs.get(key, ()):
            if run.low <= first < run.high and run.ready_s <= now:
                first = int(min(run.high, stop))
        return first

    def gaps(self, key: Hashable, low: int, high: int) -> list[tuple[int, int]]:
        """Return the parts of a range that are not here, the first one first."""
        gaps = []
        for run in self._runs.get(key, ()):
            if run.high > low and run.low < high:
                if run.low > low:
                    gaps.append((low, run.low))
                low = run.high
        return [*gaps, (low, high)] if low < high else gaps

    def touch(self, key: Hashable, low: int, high: int) -> None:
        """Have used blocks of a key: their runs are lost last."""
        for run in self._runs.get(key, ()):
            if run.high > low and run.low < high:
                self._order.move_to_end(run)

    def put(self, key: Hashable, low: int, high: int, ready_s: float) -> None:
        """Hold a range of which nothing is here; there must have been made room for it."""
        runs = self._runs.setdefault(key, [])
        place = sum(run.low < low for run in runs)
        new = Run(key, low, high, ready_s)
        if place < len(runs) and runs[place].low == high:
            new = self._joined(new, runs.pop(place))
        if place and runs[place - 1].high == low:
            place -= 1
            new = self._joined(runs.pop(place), new)
        runs.insert(place, new)
        self._order[new] = None
        self._order.move_to_end(new)
        self.used += high - low

    def _joined(self, one: Run, other: Run) -> Run:
        """Return one run in place of two that lie side by side."""
        for run in (one, other):
            self._order.pop(run, None)
        return Run(one.key, one.low, other.high, max(one.ready_s, other.ready_s))

    def make_room(self, blocks: int) -> Iterator[tuple[Hashable, int, int]]:
        """Lose as much of the least recently used as it takes; yield what is lost, run by run."""
        while self.used + blocks > self.blocks:
            run = next(iter(self._order))
            low = max(run.low, run.high - (self.used + blocks - self.blocks))
            high = run.high
            self._cut(run, low)
            yield run.key, low, high

    def forget(self, key: Hashable, begin: int) -> None:
        """Lose what is held of a key from ``begin`` on."""
        for run in [run for run in self._runs.get(key, ()) if run.high > begin]:
            self._cut(run, max(run.low, begin))

    def _cut(self, run: Run, high: int) -> None:
        """End a run at ``high``; one of which nothing is left is gone."""
        self.used -= run.high - high
        run.high = high
        if run.low == high:
            del self._order[run]
            self._runs[run.key].remove(run)
            if not self._runs[run.key]:
                del self._runs[run.key]

    def settle(self) -> None:
        """Have everything readable at any time."""
        for run in self._order:
            run.ready_s = -inf
