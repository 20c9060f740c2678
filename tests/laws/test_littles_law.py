"""L = lambda W, exactly, in a run that begins and ends empty."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servesim.engine.clock import EARLY_S
from tests.laws.cases import KINDS, cases


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(data=st.data())
def test_requests_in_the_system_are_their_times_in_it(kind: str, data: st.DataObject) -> None:
    """The area under the number of requests in the system is the sum of their E2E.

    J. D. C. Little, "A proof for the queuing formula L = lambda W", Operations Research 9(3), 1961; over
    a run that begins and ends empty it is a way to count the same seconds twice, with no mean in it.
    """
    case = data.draw(cases(kind))
    run = case.open()
    area_s = since_s = 0.0
    inside = 0
    for now in run.instants():
        area_s += inside * (now - since_s)
        since_s, inside = now, run.cluster.unfinished
    total_s = sum(row["finished_s"] - row["sent_s"] for row in run.completed)
    assert area_s == pytest.approx(total_s, abs=EARLY_S * len(case.traffic) + 1e-8)
