"""What a summary says of drafts, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from servesim.cost.speculation import Ngram
from servesim.results.gaps import further_tokens
from servesim.results.speculation import speculation
from servesim.results.window import Window
from tests.results.made import gap, pool, records, step

DRAFTING = replace(pool(), speculation=Ngram(num_speculative_tokens=3, acceptance=(0.8, 0.5, 0.25)))
WHOLE = Window(0.0, 100.0)


def test_drafts_are_counted_by_sequence_and_step() -> None:
    """Two steps of 2 sequences that get 3 and 2.5 tokens, and one of 1 that gets 1; prompts draft nothing."""
    made = records(
        [],
        [
            step(0.0, 1.0, prefill_tokens=8, sequences=1, decodes=0),
            step(1.0, 1.0, steps=2, sequences=2, decodes=2, emitted=5.5),
            step(3.0, 1.0, emitted=1.0),
        ],
        pools=[DRAFTING],
    )
    told = speculation(made, [DRAFTING], WHOLE)
    assert told == {
        "kind": "ngram",
        "num_speculative_tokens": 3,
        "rates": (0.8, 0.5, 0.25),
        "expected_length": pytest.approx(1 + 0.8 + 0.4 + 0.1),
        "mean_accepted_length": 12 / 5,
        "drafts": 5,
        "draft_tokens": 15,
        "accepted_tokens": 7,
        "accepted_share": 7 / 15,
    }
    assert speculation(made, [pool()], WHOLE) is None


def test_tokens_of_a_window_are_those_of_its_steps() -> None:
    """Of two steps of 5.2 tokens the first ends in it, and one of two torn gaps."""
    steps = [step(1.0, 1.0, steps=2, sequences=2, decodes=2, emitted=5.2), step(3.0, 1.0, emitted=1.5)]
    made = records([], steps, [gap(0, 1.5, 0.7), gap(1, 3.7, 0.2)], pools=[DRAFTING])
    assert further_tokens(made, Window(0.0, 2.5)) == 5 + 1
    assert further_tokens(made, WHOLE) == 12 + 2
