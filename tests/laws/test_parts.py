"""Where time went: the parts of a request's time add up, and are what the steps took."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from servesim.engine.clock import EARLY_S
from servesim.engine.log import COMPLETED, REQUEST_FIELDS
from servesim.results.columns import PARTS, request_columns
from tests.laws.cases import KINDS, cases
from tests.serving import Row, Run, end_s

EXACT_S = 1e-9
#: Transfers that end within a nanosecond of each other end together.
INSTANT_S = 1e-8
CONTINUOUS_KINDS = ("continuous", "disaggregated")


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(data=st.data())
def test_parts_sum_to_the_whole(kind: str, data: st.DataObject) -> None:
    """No part is negative, and E2E is their sum; TTFT is those up to the first token."""
    table = columns(data.draw(cases(kind)).serve())
    total = sum(table[f"{part}_s"] for part in PARTS)
    assert np.abs(total - table["e2e_s"]).max(initial=0.0) <= EXACT_S
    for part in PARTS:
        assert (table[f"{part}_s"] >= -EXACT_S).all(), part
    assert (table["ttft_s"] >= table["queue_s"] + table["prefill_s"] - EXACT_S).all()
    steady = table["preemptions"] == 0
    if kind != "disaggregated":
        before = table["queue_s"] + table["prefill_s"]
        assert np.allclose(table["ttft_s"][steady], before[steady], rtol=0, atol=EXACT_S)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(data=st.data())
def test_without_preemption_no_time_is_lost_to_it(kind: str, data: st.DataObject) -> None:
    for row in data.draw(cases(kind)).serve().completed:
        assert (row["preempted_s"] > 0) == (row["preemptions"] > 0)


@pytest.mark.parametrize("kind", ["continuous", "static"])
@settings(max_examples=40)
@given(data=st.data())
def test_decode_time_is_the_steps_that_emit(kind: str, data: st.DataObject) -> None:
    """What the other parts leave of E2E is, over all requests, the time of each step for each decode in it.

    However often requests are preempted: time until a lost token is recomputed is `preempted`.
    """
    run = data.draw(cases(kind)).serve()
    steps = sum(leap["decodes"] * seconds(leap) for leap in run.leaps)
    assert columns(run)["decode_s"].sum() == pytest.approx(steps, abs=1e-8)


@pytest.mark.parametrize("kind", CONTINUOUS_KINDS)
@settings(max_examples=40)
@given(data=st.data())
def test_time_in_service_is_the_rows_of_the_steps(kind: str, data: st.DataObject) -> None:
    """Prefill and decode time of all requests is the time of each step for each of its sequences.

    Where KV is never short and no chunk has to sit a step out, a request is in every step of its service.
    """
    case = data.draw(cases(kind, roomy=True))
    budget = case.service.scheduler.max_num_batched_tokens
    run = case.serve()
    assume(all(leap["decodes"] < budget for leap in run.leaps))
    table = columns(run)
    steps = sum(leap["sequences"] * seconds(leap) for leap in run.leaps)
    # An arrival that is seen early is served from its sending on, up to 0.1 us into a step.
    slack_s = EARLY_S * len(case.traffic) + 1e-8
    assert (table["prefill_s"] + table["decode_s"]).sum() == pytest.approx(steps, abs=slack_s)


@settings(max_examples=40)
@given(data=st.data())
def test_a_transfer_takes_its_latency_and_its_bytes(data: st.DataObject) -> None:
    """At least the latency and prompt / bandwidth (a byte per token); alone on the links, exactly that."""
    case = data.draw(cases("disaggregated"))
    service, run = case.service, case.serve()
    for row in run.completed:
        if row["replica"] < 0:
            assert row["transfer_s"] == row["decode_queue_s"] == 0.0
            continue
        alone_s = service.latency_s + row["input_tokens"] / service.bytes_per_s
        assert row["transfer_s"] >= alone_s - INSTANT_S
        if len(case.traffic) == 1:
            assert row["transfer_s"] == pytest.approx(alone_s, abs=EXACT_S)


def seconds(leap: Row) -> float:
    """Return how long a leap took."""
    return end_s(leap) - leap["start_s"]


def columns(run: Run) -> dict[str, np.ndarray]:
    """Return the columns of ``requests.parquet`` for the completed requests."""
    rows = np.array([[row[name] for name in REQUEST_FIELDS] for row in run.completed]).reshape(
        -1, len(REQUEST_FIELDS)
    )
    assert (rows[:, REQUEST_FIELDS.index("status")] == COMPLETED).all()
    return dict(request_columns(rows.T))
