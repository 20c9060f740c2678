"""What a trace file holds, whatever its format: times, lengths, and the blocks of the prompts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from servesim.workload.batch import BoolArray, IntArray

IdArray = NDArray[np.uint64]


class Ragged(NamedTuple):
    """A column of lists: all their items, and the number of items of each."""

    items: IdArray
    counts: IntArray


class Blocks(NamedTuple):
    """The blocks that the prompts consist of, one after the other in one flat array.

    A block's id stands for its tokens and for all before them, so two prompts that begin alike begin with the
    same ids. Prompt i has ``ids[starts[i] : starts[i + 1]]``, blocks of ``tokens`` tokens, the last of them
    perhaps partial.
    """

    ids: IdArray
    starts: IntArray
    tokens: int

    @property
    def counts(self) -> IntArray:
        """Return the number of blocks of each prompt."""
        return np.diff(self.starts)

    def taken(self, rows: IntArray) -> Blocks:
        """Return the blocks of these prompts, in this order."""
        counts = self.counts[rows]
        starts = np.concatenate([[0], np.cumsum(counts)])
        shifts = np.repeat(self.starts[:-1][rows] - starts[:-1], counts)
        return Blocks(self.ids[np.arange(starts[-1]) + shifts], starts, self.tokens)


class Dialogue(NamedTuple):
    """Which session each request belongs to, the pause before it (ns), and whether it has a time of its own.

    Sessions are numbered in the order of their first rows; one that has no session is one by itself.
    """

    session: IntArray
    pause_ns: IntArray
    dated: BoolArray

    @property
    def first(self) -> IntArray:
        """Return, for each request, the row of its session's first one."""
        rows = np.unique(self.session, return_index=True, return_inverse=True)
        first: IntArray = rows[1][rows[2]]
        return first

    @property
    def opens(self) -> BoolArray:
        """Tell which requests are the first of their sessions."""
        opens: BoolArray = self.first == np.arange(len(self.session))
        return opens

    def taken(self, rows: IntArray) -> Dialogue:
        """Return what is known of these requests, in this order."""
        return Dialogue(self.session[rows], self.pause_ns[rows], self.dated[rows])


class Recording(NamedTuple):
    """The requests of a trace in the order of the file: columns of equal length, and how they were got.

    ``time_ns`` counts from any moment; it is 0 everywhere where the file has no times (``timed`` is False).
    """

    time_ns: IntArray
    input_tokens: IntArray
    output_tokens: IntArray
    format: str
    timed: bool = True
    blocks: Blocks | None = None
    #: rows that are no requests: why, and how many
    left_out: tuple[tuple[str, int], ...] = ()
    #: sentences on how the file was read
    remarks: tuple[str, ...] = ()
    #: columns of the file that were read, with their units where a reader could doubt
    read: tuple[str, ...] = ()
    #: columns of the file that say nothing about times, lengths or blocks
    unread: tuple[str, ...] = ()
    #: which answers requests wait for; None: none
    dialogue: Dialogue | None = None

    @property
    def size(self) -> int:
        """Return the number of requests."""
        return len(self.time_ns)

    @property
    def rows(self) -> int:
        """Return the number of rows of the file, those included that are no requests."""
        return self.size + sum(count for _, count in self.left_out)

    def taken(self, rows: IntArray) -> Recording:
        """Return these requests, in this order."""
        return self._replace(
            time_ns=self.time_ns[rows],
            input_tokens=self.input_tokens[rows],
            output_tokens=self.output_tokens[rows],
            blocks=self.blocks and self.blocks.taken(rows),
            dialogue=self.dialogue and self.dialogue.taken(rows),
        )

    @property
    def begun_ns(self) -> IntArray:
        """Return when each request came, or, of a later turn, when its session began."""
        return self.time_ns if self.dialogue is None else self.time_ns[self.dialogue.first]

    def by_session(self) -> Recording:
        """Return the sessions in the order in which they begin, their turns in the order of the file."""
        assert self.dialogue is not None
        return self.taken(np.lexsort((self.dialogue.first, self.begun_ns)))

    def by_time(self) -> Recording:
        """Return the requests sorted by time; those of one time keep their order."""
        return self.taken(np.argsort(self.time_ns, kind="stable"))
