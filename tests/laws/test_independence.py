"""Replicas do not disturb each other: what one does depends on what it was sent alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servesim.cluster.router import RoundRobin
from tests.laws.cases import cases
from tests.serving import Row

PLACE = ("request_id", "replica")


@pytest.mark.parametrize("kind", ["continuous", "static"])
@settings(max_examples=40)
@given(data=st.data())
def test_two_replicas_are_two_services_with_half_the_traffic(kind: str, data: st.DataObject) -> None:
    """Round robin sends every other request to the same replica; served alone, each fares as it did."""
    case = data.draw(cases(kind))
    fitting = [sent for sent in case.traffic if sent[1] < case.service.max_model_len]
    pair = replace(case.service, replicas=2, router=RoundRobin()).serve(fitting)
    single = replace(case.service, replicas=1)
    for replica in (0, 1):
        alone = single.serve(fitting[replica::2])
        assert [own(row) for row in pair.by_id[replica::2]] == [own(row) for row in alone.by_id]
        together = [own(leap) for leap in pair.leaps if leap["replica"] == replica]
        assert together == [own(leap) for leap in alone.leaps]


def own(row: Row) -> Row:
    """Return a row without its place among the others."""
    return {name: value for name, value in row.items() if name not in PLACE}
