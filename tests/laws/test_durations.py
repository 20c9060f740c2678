"""Every step takes what its cost model says, however many of them a leap holds."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws.cases import KINDS, cases
from tests.serving import end_s


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=50)
@given(data=st.data())
def test_each_step_of_a_leap_takes_its_own_time(kind: str, data: st.DataObject) -> None:
    """Step j of a leap of n sequences that first reads c tokens reads c + j n, and lasts accordingly."""
    case = data.draw(cases(kind))
    service = case.service
    for leap in case.serve().leaps:
        if not leap["prefill_tokens"]:
            decodes = case.disaggregated and leap["replica"] >= service.replicas
            step_time = service.decode_step_time if decodes else service.step_time
            rows, context = int(leap["sequences"]), int(leap["context_tokens"])
            for step in range(int(leap["steps"])):
                seconds = step_time.mixed(rows, context + step * rows, ())
                assert end_s(leap, step + 1) - end_s(leap, step) == pytest.approx(seconds, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=50)
@given(data=st.data())
def test_a_prompt_alone_takes_its_chunks(kind: str, data: st.DataObject) -> None:
    """The first request, where it comes alone: its TTFT is the time of its chunks, one after the other.

    (In static batching: of its prompt, after the time it waits for company. With first tokens from a decode
    pool: until the prompt is computed.)
    """
    case = data.draw(cases(kind, roomy=True))
    (_, inputs, outputs), service = case.traffic[0], case.service
    (row,) = service.serve([(0.0, inputs, outputs)]).completed
    budget = inputs if kind == "static" else service.scheduler.max_num_batched_tokens
    chunks = [(min(budget, inputs - done), done) for done in range(0, inputs, budget)]
    seconds = sum(service.step_time.mixed(0, 0, [chunk]) for chunk in chunks)
    assert row["prefill_s"] == pytest.approx(seconds, abs=1e-9)
