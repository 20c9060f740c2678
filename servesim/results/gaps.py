"""The gaps between successive tokens: nearly all are one step of a leap long, a few are torn."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from servesim.results.runs import Runs, Source
from servesim.results.stored import Tables
from servesim.results.window import Window

Floats = NDArray[np.float64]


def token_gaps(records: Tables, window: Window | None = None) -> Source:
    """Return the source of the gaps between tokens of one request: all, or those that end in the window.

    A step that gives k sequences a further token makes k gaps as long as itself, but for those of them that
    had waited for prompts before it; such a gap, and one that spans a preemption or a KV transfer, has a row
    of its own. Law: all gaps together number the tokens emitted, less one for each request that emitted any.
    Tokens that leave together, as those of a verified draft do, are one piece of an answer: with them gaps
    are fewer, as ``vllm bench serve`` counts.
    """
    return lambda: chain(_step_gaps(records, window), _torn_gaps(records, window))


def further_tokens(records: Tables, window: Window) -> int:
    """Return how many tokens were emitted in the window, but for the first one of each request.

    Where drafts let a step emit several tokens to a sequence, the fractions of its even share count.
    """
    emitted = 0.0
    names = ("start_s", "first_step_s", "increment_s", "steps", "emitted_tokens", "stalled")
    for start_s, first_s, increment_s, steps, each, stalled in records.step_table.groups(*names):
        begin, end = (steps_ended(start_s, first_s, increment_s, steps, t) for t in window)
        late = np.where((begin < 1) & (end > 0), stalled, 0)  # whose gaps have rows of their own
        emitted += float(((end - begin) * each).sum() - late.sum())
    for end_s, sequences in records.gap_table.groups("end_s", "sequences"):
        emitted += float(sequences[window.sees(end_s)].sum())
    return round(emitted)


def _step_gaps(records: Tables, window: Window | None) -> Iterator[Runs]:
    names = ("start_s", "first_step_s", "increment_s", "steps", "decodes", "stalled")
    for start_s, first_s, increment_s, steps, decodes, stalled in records.step_table.groups(*names):
        begin, end = np.zeros_like(steps), steps
        if window is not None:
            begin, end = (steps_ended(start_s, first_s, increment_s, steps, t) for t in window)
        late = stalled > 0
        if late.any():
            first = Runs(first_s, increment_s, begin, np.minimum(end, 1), decodes - stalled).take(late)
            yield from _not_empty(first)
            begin = np.where(late, np.maximum(begin, 1), begin)
        yield from _not_empty(Runs(first_s, increment_s, begin, end, decodes))


def _not_empty(runs: Runs) -> Iterator[Runs]:
    """Yield the runs that hold anything, if any does."""
    counted = runs.take((runs.weight > 0) & (runs.stop > runs.start))
    if len(counted.first):
        yield counted


def _torn_gaps(records: Tables, window: Window | None) -> Iterator[Runs]:
    for end_s, gap_s, sequences in records.gap_table.groups("end_s", "gap_s", "sequences"):
        seen = slice(None) if window is None else window.sees(end_s)
        gaps_s, weight = gap_s[seen], sequences[seen]
        if len(gaps_s):
            zeros = np.zeros_like(weight)
            yield Runs(gaps_s, np.zeros_like(gaps_s), zeros, zeros + 1, weight)


def steps_ended(
    start_s: Floats, first_s: Floats, increment_s: Floats, steps: NDArray[np.int64], time_s: float
) -> NDArray[np.int64]:
    """Return how many steps of each leap have ended by ``time_s``.

    Only leaps under way then, one per replica at most, are looked into step by step.
    """
    end_s = start_s + steps * first_s + increment_s * (steps * (steps - 1) / 2)
    ended = np.where(end_s <= time_s, steps, 0)
    for leap in np.flatnonzero((start_s < time_s) & (end_s > time_s)):
        done = np.arange(1, steps[leap] + 1)
        ends_s = start_s[leap] + done * first_s[leap] + increment_s[leap] * (done * (done - 1) / 2)
        ended[leap] = np.searchsorted(ends_s, time_s, side="right")
    return ended
