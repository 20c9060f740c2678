"""Turns of a trace that follow each other: which rows are one session, and what is said of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from servesim.workload.batch import BoolArray, FloatArray, IntArray
from servesim.workload.formats.prefixes import Spans, shared_spans
from servesim.workload.formats.recording import Dialogue, Recording
from servesim.workload.notes import Notes

#: Share of the later turns from which on they say how all are.
_MOSTLY = 0.5

#: What lengths of later prompts are of; auto: what the blocks of most of them say.
TurnInputs = Literal["auto", "whole", "new"]


@dataclass(frozen=True, eq=False)
class Followed:
    """The sessions of a recording that are replayed, in the order in which they begin."""

    recording: Recording
    dialogue: Dialogue
    groups: Groups
    turn_inputs: TurnInputs

    @property
    def begins_ns(self) -> IntArray:
        """Return the recorded time of each session's first row."""
        return self.recording.time_ns[self.groups.opening]

    @cached_property
    def whole(self) -> bool:
        """Whether prompts of later turns hold all that was said before."""
        if self.turn_inputs == "auto":
            return _are_whole(self.recording, self.groups)
        return self.turn_inputs == "whole"

    @property
    def offsets_s(self) -> FloatArray:
        """Return how long after its session's first row each row comes, as recorded; 0 where it is not."""
        rows, sizes = self.groups.rows, np.diff(self.groups.firsts)
        offsets_s = (self.recording.time_ns[rows] - np.repeat(self.begins_ns, sizes)) / 1e9
        return np.where(self.dialogue.dated[rows], offsets_s, 0.0)

    @property
    def spans(self) -> Spans | None:
        """Return what prompts share, or first prompts where later ones are not whole; None: unknown."""
        if self.recording.blocks is None:
            return None
        rows = self.groups.rows if self.whole else self.groups.opening
        return shared_spans(self.recording.blocks.taken(rows), self.recording.input_tokens[rows])

    def notes(self, requests: int | None, timed: bool, drawn: bool, remarks: tuple[str, ...]) -> Notes:
        """Return what was done to the rows; ``drawn``: the sessions begin at other times than recorded."""
        recording, rows, begins_ns = self.recording, self.groups.rows, self.begins_ns
        inputs = "whole" if self.whole else "new input behind all that was said"
        sessions = f"{len(begins_ns):,} session{'s' if len(begins_ns) > 1 else ''}"
        return Notes(
            rows=recording.rows,
            requests=len(rows) if requests is None else min(len(rows), requests),
            out_of_order=0,
            same_time=int(np.count_nonzero(np.diff(begins_ns) == 0)) if timed and not drawn else 0,
            zero_outputs=int(np.count_nonzero(recording.output_tokens[rows] == 0)),
            shifted_s=0.0 if drawn else float(begins_ns[0]) / 1e9,
            no_requests=recording.left_out,
            remarks=(
                *remarks,
                f"{sessions}: later turns wait for answers (workload.follow_turns)",
                f"prompts of later turns: {inputs} (workload.turn_inputs)",
            ),
        )


class Groups(NamedTuple):
    """Rows by their sessions: group i has ``rows[firsts[i] : firsts[i + 1]]``, in the order of the file."""

    rows: IntArray
    firsts: IntArray

    @staticmethod
    def by_begin(session: IntArray, time_ns: IntArray) -> Groups:
        """Return the sessions in the order of the times of their first rows."""
        rows = np.argsort(session, kind="stable")
        firsts = np.append(np.flatnonzero(np.diff(session[rows], prepend=-1)), len(rows))
        begins_ns = time_ns[rows[firsts[:-1]]]
        return Groups(rows, firsts).taken(np.argsort(begins_ns, kind="stable"))

    def taken(self, groups: IntArray) -> Groups:
        """Return some of the groups, in this order."""
        sizes = np.diff(self.firsts)[groups]
        firsts = np.concatenate([[0], np.cumsum(sizes)])
        shifts = np.repeat(self.firsts[:-1][groups] - firsts[:-1], sizes)
        return Groups(self.rows[np.arange(firsts[-1]) + shifts], firsts)

    @property
    def opening(self) -> IntArray:
        """Return the first row of each group."""
        return self.rows[self.firsts[:-1]]


def _are_whole(recording: Recording, groups: Groups) -> bool:
    """Tell whether later prompts hold all that was said before, as those of Mooncake and of Dynamo do.

    They do where most of those with blocks begin with the first block of their session. Without blocks they
    are taken for what is new in each, as AIPerf has it.
    """
    if recording.blocks is None:
        return False
    blocks = recording.blocks.taken(groups.rows)
    places = np.arange(len(groups.rows))
    first = np.repeat(groups.firsts[:-1], np.diff(groups.firsts))
    later: BoolArray = (first != places) & (blocks.counts > 0)
    both = later & (blocks.counts[first] > 0)
    alike = blocks.ids[blocks.starts[:-1][both]] == blocks.ids[blocks.starts[:-1][first[both]]]
    return bool(later.any() and alike.sum() >= _MOSTLY * later.sum())
