"""Every gap between two tokens is told once: as a step of a leap, or as a torn gap."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import servesim
from tests.laws.cases import KINDS, cases
from tests.serving import end_s


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(data=st.data())
def test_gaps_number_the_tokens_less_the_first_ones(kind: str, data: st.DataObject) -> None:
    """Sum of (decodes x steps) + torn gaps = sum of (tokens - 1), in a run that is cut as well."""
    run = data.draw(cases(kind)).serve(data.draw(st.sampled_from((None, 0.05, 0.3, 1.0))))
    gaps = sum(leap["decodes"] * leap["steps"] for leap in run.leaps) + len(run.gaps)
    assert gaps == sum(max(row["generated"] - 1, 0) for row in run.requests)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(data=st.data())
def test_gaps_add_up_to_the_time_after_the_first_token(kind: str, data: st.DataObject) -> None:
    """Sum of all gaps = sum over requests of (E2E - TTFT), preempted and handed over or not."""
    run = data.draw(cases(kind)).serve()
    steps_s = sum(leap["decodes"] * (end_s(leap) - leap["start_s"]) for leap in run.leaps)
    torn_s = sum(row["gap_s"] for row in run.gaps)
    after_s = sum(row["finished_s"] - row["first_token_s"] for row in run.completed)
    assert steps_s + torn_s == pytest.approx(after_s, abs=1e-8)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(data=st.data())
def test_only_hand_overs_and_preemptions_tear_gaps(kind: str, data: st.DataObject) -> None:
    """A request handed over after token 1 has one torn gap; one preempted k times after it at most k more."""
    case = data.draw(cases(kind))
    run = case.serve()
    handed = case.disaggregated and case.service.scheduler.first_token == "prefill"
    least = sum(row["replica"] >= 0 for row in run.completed) if handed else 0
    assert least <= len(run.gaps) <= least + sum(row["preemptions"] for row in run.completed)


@pytest.mark.parametrize("kind", KINDS)
def test_the_summary_pools_these_gaps(kind: str) -> None:
    """ITL: n = sum of (tokens - 1), and n x mean = sum of (E2E - TTFT)."""
    overrides = (f"scheduler={kind}", "calibration=roofline", "workload.requests=40")
    result = servesim.run(servesim.load(*overrides))
    itl, requests = result.summary["latency"]["itl_s"], result.requests
    assert itl["n"] == (requests.generated_tokens - 1).sum()
    assert itl["n"] * itl["mean"] == pytest.approx((requests.e2e_s - requests.ttft_s).sum(), rel=1e-9)
