"""Time runs forward, and everything happens at the beginning or the end of a step."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from math import inf, isnan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servesim.engine.clock import EARLY_S
from tests.laws.cases import KINDS, cases
from tests.serving import Row, Run, end_s, step_starts

EPSILON_S = 1e-9


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(data=st.data())
def test_moments_of_a_request_follow_each_other(kind: str, data: st.DataObject) -> None:
    """Sent, scheduled, first token, finished; in a run that is cut, the later ones are missing."""
    horizon_s = data.draw(st.sampled_from((None, 0.05, 1.0)))
    run = data.draw(cases(kind)).serve(horizon_s)
    for row in run.requests:
        moments = [row["sent_s"], row["sent_s"] + row["queue_s"], row["first_token_s"], row["finished_s"]]
        happened = [moment for moment in moments if not isnan(moment)]
        assert moments[: len(happened)] == happened, "a moment without the one before"
        assert all(earlier <= later + EPSILON_S for earlier, later in pairwise(happened))
        assert happened[-1] <= (inf if horizon_s is None else horizon_s + EARLY_S)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(data=st.data())
def test_a_replica_takes_one_step_at_a_time(kind: str, data: st.DataObject) -> None:
    run = data.draw(cases(kind)).serve(data.draw(st.sampled_from((None, 0.05, 1.0))))
    for leaps in by_replica(run).values():
        for leap in leaps:
            ends = [end_s(leap, number) for number in range(int(leap["steps"]) + 1)]
            assert all(start < end for start, end in pairwise(ends))
        for before, after in pairwise(leaps):
            assert end_s(before) <= after["start_s"] + EPSILON_S


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(data=st.data())
def test_rows_come_in_the_order_of_time(kind: str, data: st.DataObject) -> None:
    run = data.draw(cases(kind)).serve()
    finished = [row["finished_s"] for row in run.completed]
    assert finished == sorted(finished)
    ends = [end_s(leap) for leap in run.leaps]
    assert all(earlier <= later + EPSILON_S for earlier, later in pairwise(ends))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(data=st.data())
def test_what_happens_to_a_request_happens_at_a_step_of_its_replica(kind: str, data: st.DataObject) -> None:
    """It is scheduled when a step starts; tokens leave, and requests finish, when one ends."""
    run = data.draw(cases(kind)).serve()
    starts = {
        replica: [s for leap in leaps for s in step_starts(leap)]
        for replica, leaps in by_replica(run).items()
    }
    ends = {
        replica: [end_s(leap, n + 1) for leap in leaps for n in range(int(leap["steps"]))]
        for replica, leaps in by_replica(run).items()
    }
    for row in run.completed:
        first = row["prefill_replica"] if row["prefill_replica"] >= 0 else row["replica"]
        emitter = row["replica"] if kind != "disaggregated" or from_decode(run) else row["prefill_replica"]
        last = row["replica"] if row["replica"] >= 0 else row["prefill_replica"]
        assert near(row["sent_s"] + row["queue_s"], starts[first])
        assert near(row["first_token_s"], ends[emitter])
        assert near(row["finished_s"], ends[last])


def from_decode(run: Run) -> bool:
    """Say whether the decode pool emits first tokens."""
    return run.service.scheduler.first_token == "decode"


def near(moment_s: float, moments: list[float]) -> bool:
    """Say whether a moment is one of those, up to the 0.1 us by which arrivals are seen early."""
    return min(abs(moment_s - other_s) for other_s in moments) <= EARLY_S + EPSILON_S


def by_replica(run: Run) -> dict[float, list[Row]]:
    """Return the leaps of each replica, in the order of writing."""
    leaps = defaultdict(list)
    for leap in run.leaps:
        leaps[leap["replica"]].append(leap)
    return leaps
