"""The gaps between tokens, from leaps and torn gaps, whole or within a window."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from servesim.engine.log import NOBODY
from servesim.results.gaps import steps_ended, token_gaps
from servesim.results.window import Window
from tests.results.made import gap, records, step


def gaps_of(made: object, window: Window | None = None) -> list[float]:
    """Return every gap, in order of size."""
    parts = [np.repeat(*runs.expanded()) for runs in token_gaps(made, window)()]  # type: ignore[arg-type]
    return sorted(np.concatenate(parts).tolist()) if parts else []


LEAPS = [
    step(0.0, 0.5, decodes=0, prefill_tokens=4),  # a prefill alone: no gap ends
    step(0.5, 0.25, steps=3, increment_s=0.125, decodes=2, sequences=2),  # ends 0.75, 1.125, 1.625
]


def test_a_step_makes_one_gap_for_each_sequence_that_goes_on() -> None:
    """Two sequences over three steps of 0.25, 0.375 and 0.5 s, and one gap torn by a preemption."""
    made = records([], LEAPS, [gap(0, 1.5, 0.875)])
    assert gaps_of(made) == [0.25, 0.25, 0.375, 0.375, 0.5, 0.5, 0.875]


def test_a_window_keeps_the_gaps_that_end_in_it() -> None:
    """After its start, up to its end: of the ends at 0.75, 1.125 and 1.625 those after 0.75 up to 1.625."""
    made = records([], LEAPS, [gap(0, 0.75, 7.0), gap(1, 1.5, 0.875)])
    assert gaps_of(made, Window(0.75, 1.625)) == [0.375, 0.375, 0.5, 0.5, 0.875]
    assert gaps_of(made, Window(0.75, 1.5)) == [0.375, 0.375, 0.875]
    assert gaps_of(made, Window(2.0, 3.0)) == []


def test_who_has_waited_for_prompts_has_one_gap_of_its_own_for_it() -> None:
    """Of three two had waited: 1 s since the last step. The first step of 0.25 s is the gap of the third."""
    late = step(3.0, 0.25, steps=3, increment_s=0.125, decodes=3, sequences=3, stalled=2)
    shared = [*gap(NOBODY, 3.25, 1.25)[:3], 2]
    made = records([], [late], [shared])
    assert gaps_of(made) == [0.25, *[0.375] * 3, *[0.5] * 3, 1.25, 1.25]
    assert gaps_of(made, Window(2.0, 3.25)) == [0.25, 1.25, 1.25]
    assert gaps_of(made, Window(3.25, 9.0)) == [*[0.375] * 3, *[0.5] * 3]


@given(st.integers(0, 20), st.integers(1, 10), st.integers(0, 3), st.integers(1, 40), st.integers(0, 400))
def test_steps_ended_counts_the_ends_one_by_one(
    start: int, first: int, increment: int, steps: int, time: int
) -> None:
    """On a grid of quarters, where all sums are exact."""
    leap = (np.array([x / 4]) for x in (start, first, increment))
    ends = np.cumsum([first + j * increment for j in range(steps)]) + start
    assert steps_ended(*leap, np.array([steps]), time / 4).tolist() == [int((ends <= time).sum())]
