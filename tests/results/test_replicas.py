"""What each replica had to do."""

from __future__ import annotations

import pytest

from servesim.results.replicas import MOST_TOLD, replicas
from servesim.results.window import Window
from tests.results.made import pool, records, request, step, waiting


def test_each_replica_is_told_by_itself() -> None:
    """Replica 1 serves two requests in 2 s of 10, and finds 6 of their 8 tokens; one comes to nobody."""
    rows = [
        request(0.0, 1.0, 2.0, replica=1, cached_tokens=2),
        request(1.0, 2.0, 3.0, replica=1, cached_tokens=4),
        request(1.0, 2.0, 3.0, replica=0),
        waiting(4.0),
    ]
    steps = [step(1.0, 1.0, replica=1), step(2.0, 1.0, replica=1), step(9.5, 1.0)]
    pools = [pool(replicas=2)]
    told = replicas(records(rows, steps, pools=pools), pools, Window(0.0, 10.0))
    assert told is not None
    assert [each["requests"] for each in told] == [1, 2]
    assert [each["busy"] for each in told] == pytest.approx([0.05, 0.2])
    assert [each["hit_rate"] for each in told] == [0.0, 6 / 8]


def test_of_two_pools_both_count_and_of_very_many_none() -> None:
    pools = [pool("prefill"), pool("decode", first_replica=1)]
    rows = [request(0.0, 1.0, 2.0, replica=1, prefill_replica=0, cached_tokens=2)]
    told = replicas(records(rows, pools=pools), pools, Window(0.0, 10.0))
    assert told is not None
    assert [(each["role"], each["requests"]) for each in told] == [("prefill", 1), ("decode", 1)]
    assert told[0]["hit_rate"] == 0.5
    many = [pool(replicas=MOST_TOLD + 1)]
    assert replicas(records(rows, pools=many), many, Window(0.0, 10.0)) is None
