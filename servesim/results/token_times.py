"""When each token of each completed request was emitted, exactly, from the leaps of a run.

A request that decodes gets one token in every step of its replica that gives any sequence one; or a piece of
its answer, where drafts are verified. So what its tokens came from is few runs of successive steps: from its
first token on, and from each torn gap on, up to the next torn gap or its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from servesim.check import ConfigError, Problem
from servesim.engine.log import COMPLETED
from servesim.results.leaps import Leaps
from servesim.results.runs import Floats, Integers, Runs, spread
from servesim.results.stored import Tables

#: Gaps that are laid out at once.
AT_ONCE = 1 << 20
#: Leaps whose gaps are yielded at once.
GROUP = 1 << 15
#: Seconds below which a stretch of time holds no step: what the differences of two moments lose.
NOTHING_S = 1e-9


@dataclass(frozen=True)
class TokenTimes:
    """The stretches of steps that gave the completed requests their tokens after the first.

    Attributes:
        rows: the row of each completed request in the table, in order of sending; the arrays below name
            requests by their place in this order.
        leaps: the leaps of the run.
        owner: the request of each stretch; the stretches of one request follow each other.
        gap_s: the torn gap that a stretch begins with, NaN where it begins with the first token.
        begin: its first leap.
        end: the leap behind its last one.
    """

    rows: NDArray[np.int64]
    leaps: Leaps
    owner: Integers
    gap_s: Floats
    begin: Integers
    end: Integers

    @classmethod
    def of(cls, tables: Tables) -> TokenTimes:
        """Return the stretches of a run.

        Raises:
            ConfigError: the tables do not belong together.
        """
        names = ("request_id", "status", "replica", "prefill_replica", "sent_s", "ttft_s", "e2e_s")
        table = tables.request_table
        identity, status, replica, prefill, sent_s, ttft_s, e2e_s = (table.column(name) for name in names)
        rows = np.flatnonzero(status == COMPLETED)
        rows = rows[np.argsort(identity[rows], kind="stable")]
        place = np.where(np.isnan(replica), prefill, replica)[rows]
        torn = _Torn.of(tables, identity[rows])
        leaps = Leaps.of(tables.step_table)
        found = cls(
            rows, leaps, *_stretches(leaps, place, (sent_s + ttft_s)[rows], (sent_s + e2e_s)[rows], torn)
        )
        emitted, decodes = (tables.step_table.column(name) for name in ("emitted_tokens", "decodes"))
        pieces = bool((emitted > decodes).any())
        found._check(identity[rows], table.column("generated_tokens")[rows], pieces)
        return found

    @property
    def steps(self) -> Integers:
        """How many steps each stretch has."""
        steps: Integers = self.leaps.first_step[self.end] - self.leaps.first_step[self.begin]
        return steps

    @property
    def gaps(self) -> Integers:
        """How many gaps between tokens each stretch has: its steps, and the torn gap in front of them."""
        gaps: Integers = self.steps + ~np.isnan(self.gap_s)
        return gaps

    def inter_token_s(self) -> Iterator[Floats]:
        """Yield for each request the gaps between its tokens, in seconds, in order."""
        per_request = np.bincount(self.owner, self.gaps, len(self.rows)).astype(np.int64)
        ends = np.cumsum(per_request)
        stretches = np.searchsorted(self.owner, np.arange(len(self.rows) + 1))
        cuts = [0, *(np.flatnonzero(np.diff(ends // AT_ONCE)) + 1).tolist(), len(self.rows)]
        for first, last in pairwise(cuts):
            gaps_s = self._laid_out(slice(stretches[first], stretches[last]))
            yield from np.split(gaps_s, np.cumsum(per_request[first:last])[:-1]) if last > first else ()

    def _laid_out(self, part: slice) -> Floats:
        """Return the gaps of some stretches, one after the other."""
        stretch, offset = spread(self.gaps[part])
        torn = ~np.isnan(self.gap_s[part])
        step = self.leaps.first_step[self.begin[part]][stretch] + offset - torn[stretch]
        in_front = torn[stretch] & (offset == 0)
        gaps_s = np.where(in_front, self.gap_s[part][stretch], 0.0)
        gaps_s[~in_front] = self._gaps_before(step[~in_front], self.begin[part][stretch[~in_front]])
        return gaps_s

    def _gaps_before(self, step: Integers, begin: Integers) -> Floats:
        """Return the gaps that end with some steps, of stretches that begin with these leaps.

        Beside the step that is what its sequence has waited for prompts: since the last step, or since its
        stretch has begun.
        """
        leaps, gaps_s = self.leaps, self.leaps.durations_s(step)
        leap = leaps.leap_of(step)
        late = np.flatnonzero((leaps.stalled[leap] > 0) & (step == leaps.first_step[leap]))
        leap, begin = leap[late], begin[late]
        since_s = np.where(
            step[late] == leaps.first_step[begin],
            leaps.start_s[leap] - leaps.start_s[begin],
            leaps.stalls_s[leap],
        )
        gaps_s[late] += since_s
        return gaps_s

    def second_token_s(self) -> Floats:
        """Return for each request the gap between its first two tokens, in seconds; NaN for one token."""
        has_any = np.flatnonzero(self.gaps > 0)
        owner, first = np.unique(self.owner[has_any], return_index=True)
        stretch = has_any[first]
        gaps_s = self.gap_s[stretch]
        in_step = np.isnan(gaps_s)
        begin = self.begin[stretch[in_step]]
        gaps_s[in_step] = self._gaps_before(self.leaps.first_step[begin], begin)
        found = np.full(len(self.rows), np.nan)
        found[owner] = gaps_s
        return found

    def decodes(self) -> Integers:
        """Return how many completed requests get a token in each step of each leap."""
        change = np.bincount(self.begin, minlength=len(self.leaps) + 1)
        change -= np.bincount(self.end, minlength=len(self.leaps) + 1)
        return np.cumsum(change)[:-1]

    def pooled(self) -> Iterator[Runs]:
        """Yield the gaps of all completed requests as runs: the method is a source of a sample."""
        decodes, late = self.decodes(), self.leaps.stalled > 0
        busy = np.flatnonzero((decodes > 0) & (self.leaps.steps > late))
        for start in range(0, len(busy), GROUP):
            leap = busy[start : start + GROUP]
            steps = self.leaps.steps[leap]
            begin = late[leap].astype(np.int64)
            yield Runs(self.leaps.first_s[leap], self.leaps.increment_s[leap], begin, steps, decodes[leap])
        yield from _single(*self._first_gaps(decodes))
        torn_s = self.gap_s[~np.isnan(self.gap_s)]
        yield from _single(torn_s, np.ones(len(torn_s), dtype=np.int64))

    def _first_gaps(self, decodes: Integers) -> tuple[Floats, Integers]:
        """Return the gaps that end with the first steps of leaps behind a stall, and how many have each."""
        leaps = self.leaps
        late = np.flatnonzero((leaps.stalled > 0) & (decodes > 0))
        begin = self.begin[self.steps > 0]
        step = leaps.first_step[begin]
        first = leaps.leap_of(step)
        new = leaps.stalled[first] > 0
        longer_s = leaps.first_s[late] + leaps.stalls_s[late]
        others = decodes[late] - np.bincount(first[new], minlength=len(leaps))[late]
        gaps_s = np.concatenate([longer_s, self._gaps_before(step[new], begin[new])])
        return gaps_s, np.concatenate([others, np.ones(int(new.sum()), dtype=np.int64)])

    def _check(self, identity: Integers, generated: Integers, pieces: bool) -> None:
        """Raise what is wrong where the stretches do not give each request all its tokens.

        Where tokens come in ``pieces``, there may be fewer of these than tokens.
        """
        given = 1 + np.bincount(self.owner, self.gaps, len(self.rows)).astype(np.int64)
        wrong = np.flatnonzero(((given > generated) if pieces else (given != generated)) & (generated > 0))
        if len(wrong):
            number, got, has = (int(each[wrong[0]]) for each in (identity, given, generated))
            message = f"gives request {number} {got:,} tokens, requests.parquet says {has:,}"
            raise ConfigError([Problem("steps.parquet", None, message)])


def _single(gaps_s: Floats, count: Integers) -> Iterator[Runs]:
    """Yield gaps as runs of one value each, those that anybody has."""
    gaps_s, count = gaps_s[count > 0], count[count > 0]
    if len(gaps_s):
        zeros = np.zeros_like(count)
        yield Runs(gaps_s, np.zeros_like(gaps_s), zeros, zeros + 1, count)


@dataclass(frozen=True)
class _Torn:
    """The torn gaps of the completed requests, each one's in order of time."""

    owner: Integers
    start_s: Floats
    end_s: Floats
    gap_s: Floats

    @classmethod
    def of(cls, tables: Tables, identity: Integers) -> _Torn:
        """Return the torn gaps of the requests with these ids, which are in order."""
        request_id, end_s, gap_s = (
            tables.gap_table.column(name) for name in ("request_id", "end_s", "gap_s")
        )
        owner = np.searchsorted(identity, request_id)
        known = np.flatnonzero(np.append(identity, -1)[owner] == request_id)
        order = known[np.lexsort((end_s[known], owner[known]))]
        return cls(owner[order], end_s[order] - gap_s[order], end_s[order], gap_s[order])


def _stretches(
    leaps: Leaps, replica: NDArray[Any], first_s: Floats, last_s: Floats, torn: _Torn
) -> tuple[Integers, Floats, Integers, Integers]:
    """Return owner, gap, first leap and leap behind the last of each stretch, in order.

    Args:
        leaps: the leaps of the run.
        replica: where each request decodes.
        first_s: when its first token left.
        last_s: when its last one did.
        torn: the gaps at which its steps are interrupted.
    """
    requests = np.arange(len(replica))
    owner = np.concatenate([requests, torn.owner])
    order = np.lexsort((np.concatenate([first_s, torn.end_s]), owner))
    owner = owner[order]
    starts_s = np.concatenate([first_s, torn.end_s])[order]
    gap_s = np.concatenate([np.full(len(requests), np.nan), torn.gap_s])[order]
    ends = np.concatenate([torn.owner, requests])
    ends_s = np.concatenate([torn.start_s, last_s])[
        np.lexsort((np.concatenate([torn.start_s, last_s]), ends))
    ]
    begin = leaps.ended_by(replica[owner], starts_s)
    end = leaps.ended_by(replica[owner], ends_s)
    # a first token that another pool has emitted is at no boundary of this replica
    return owner, gap_s, begin, np.where(ends_s - starts_s <= NOTHING_S, begin, np.maximum(end, begin))
