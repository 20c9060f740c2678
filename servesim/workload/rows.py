"""Rows of a trace that are sent each at a time of its own, whatever becomes of the others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from servesim.workload.batch import Batch, FloatArray, IntArray
from servesim.workload.formats.prefixes import Spans, shared_spans
from servesim.workload.formats.recording import Recording
from servesim.workload.notes import Notes


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a recording that are replayed, in order of time.

    Attributes:
        recording: all that the file holds.
        places: where the rows stand in it.
        sent_s: when each is sent (seconds), unless it is sent at a rate.

    """

    recording: Recording
    places: IntArray
    sent_s: FloatArray

    def until(self, requests: int | None, duration_s: float | None) -> Rows:
        """Return the rows up to the first limit reached: their number, or the end of the sending."""
        sent_s = self.requests.until(requests, duration_s).sent_s
        return replace(self, places=self.places[: len(sent_s)], sent_s=sent_s)

    @property
    def requests(self) -> Batch:
        """Return the requests of the rows; of 0 output tokens none is left."""
        outputs = np.maximum(self.recording.output_tokens[self.places], 1)
        return Batch(self.sent_s, self.recording.input_tokens[self.places], outputs)

    @cached_property
    def spans(self) -> Spans | None:
        """What the prompts share; None where the file does not tell their blocks."""
        if self.recording.blocks is None:
            return None
        return shared_spans(
            self.recording.blocks.taken(self.places), self.recording.input_tokens[self.places]
        )

    def notes(self, timed: bool, drawn: bool, remarks: tuple[str, ...]) -> Notes:
        """Return what was done to the rows; ``drawn``: they are sent at other times than recorded."""
        recording = self.recording
        return Notes(
            rows=recording.rows,
            requests=len(self.places),
            out_of_order=int(np.count_nonzero(np.diff(recording.time_ns) < 0)),
            same_time=int(np.count_nonzero(np.diff(self.sent_s) == 0)) if timed and not drawn else 0,
            zero_outputs=int(np.count_nonzero(recording.output_tokens[self.places] == 0)),
            shifted_s=0.0 if drawn else float(recording.time_ns[self.places[0]]) / 1e9,
            no_requests=recording.left_out,
            remarks=remarks,
        )
