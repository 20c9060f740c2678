"""Tenants and classes told apart, from requests made by hand."""

from __future__ import annotations

from math import nan

import numpy as np
import pytest

from servesim.engine.log import DROPPED, PROMPT_TOO_LONG, REQUEST_FIELDS, TIMED_OUT
from servesim.results.classes import classes
from servesim.results.fairness import fairness, jain_index
from servesim.results.service import Service
from servesim.results.slo import Slo
from servesim.results.window import Window
from tests.results.made import pool, records, request, summary, waiting

RUN = Window(0.0, 10.0)
EVERY = np.True_


def test_the_index_is_1_where_all_get_the_same_and_1_in_n_where_one_gets_all() -> None:
    assert jain_index(np.array([3.0, 3.0, 3.0])) == 1.0
    assert jain_index(np.array([7.0, 0.0, 0.0, 0.0])) == 0.25
    assert jain_index(np.array([1.0, 3.0])) == 16 / 20
    assert np.isnan(jain_index(np.zeros(2)))


def test_service_over_time() -> None:
    """10 tokens when it is scheduled at 2 s, 2 at the first token at 4 s, then 2 each second until 8 s."""
    made = records([request(1.0, 4.0, 8.0, scheduled_s=2.0, input_tokens=10, output_tokens=5)])
    service = Service.of(made, RUN)
    moments_s = np.array([0.0, 1.9, 2.0, 3.9, 4.0, 5.0, 8.0, 10.0])
    assert service.by(moments_s).tolist() == [0, 0, 10, 10, 12, 14, 20, 20]
    assert service.waits(moments_s).tolist() == [False, True, *[False] * 6]


#: A is served while B waits from 1 s to 5 s; A has another request waiting from 0 s to 3 s.
TWO = [
    request(0.0, 1.0, 5.0, request_id=0, input_tokens=10, output_tokens=9),
    request(0.0, 4.0, 6.0, request_id=1, scheduled_s=3.0, input_tokens=20, output_tokens=2),
    request(1.0, 6.0, 9.0, request_id=2, scheduled_s=5.0, input_tokens=40, output_tokens=4, tenant=1),
]


def test_what_is_compared_is_what_they_got_while_all_waited() -> None:
    """Both wait from 1 s to 3 s: A streams 2 tokens a second, and its second prompt is scheduled at 3 s."""
    found = fairness(records(TWO), RUN, EVERY, Slo(), {"a": {"weight": 1.0}, "b": {"weight": 2.0}})
    assert found is not None
    assert (found["backlogged_s"], found["number"]) == (2.0, 2)
    assert found["jain_index"] == 0.5
    a, b = found["tenants"]["a"], found["tenants"]["b"]
    assert (a["requests"], b["requests"], a["completed"]) == (2, 1, 2)
    assert (a["weight"], b["weight"]) == (1.0, 2.0)
    assert (a["backlogged_service_per_s"], b["backlogged_service_per_s"]) == ((20 + 8) / 2, 0.0)
    assert (a["service_per_s"], b["service_per_s"]) == (5.2, 4.8)
    assert b["ttft_s"] == {"mean": 5.0, "p50": 5.0, "p99": 5.0}


def test_outcomes_are_of_those_that_the_summary_speaks_of_and_service_of_all() -> None:
    whole, part = (
        fairness(records(TWO), RUN, np.array(sent), Slo(), {}) for sent in ([True] * 3, [False, True, True])
    )
    assert whole is not None
    assert part is not None
    assert [part["tenants"][name]["requests"] for name in "01"] == [1, 1]
    for name in "01":
        assert part["tenants"][name]["service_per_s"] == whole["tenants"][name]["service_per_s"]


def test_where_all_hardly_ever_wait_there_is_no_index() -> None:
    apart = [*TWO[:1], request(6.0, 7.0, 8.0, request_id=1, input_tokens=12, output_tokens=8, tenant=1)]
    found = fairness(records(apart), RUN, EVERY, Slo(), {})
    assert found is not None
    assert found["backlogged_s"] == 0.0
    assert np.isnan(found["jain_index"])
    assert list(found["tenants"]) == ["0", "1"]


def test_only_who_waits_at_the_same_replica_is_compared() -> None:
    """Each replica divides what it serves itself, so twice the same replica is as even as one of them."""
    everywhere = [row for replica in (0, 1) for row in _on(replica)]
    one, both = (
        fairness(records(rows, pools=[pool(replicas=2)]), RUN, EVERY, Slo(), {})
        for rows in (_on(1), everywhere)
    )
    assert one is not None
    assert both is not None
    assert (one["backlogged_s"], both["backlogged_s"]) == (2.0, 4.0)
    assert both["jain_index"] == one["jain_index"]
    apart = fairness(records([*_on(0)[:2], _on(1)[2]], pools=[pool(replicas=2)]), RUN, EVERY, Slo(), {})
    assert apart is not None
    assert apart["backlogged_s"] == 0.0


def _on(replica: int) -> list[list[float]]:
    """Return the requests of TWO on a replica."""
    where = REQUEST_FIELDS.index("replica")
    return [[*row[:where], float(replica), *row[where + 1 :]] for row in TWO]


def test_who_is_dropped_does_not_wait_and_who_is_left_over_does() -> None:
    lost = waiting(0.0, request_id=3, status=DROPPED, reason=PROMPT_TOO_LONG, tenant=1, queue_s=nan)
    left = waiting(0.0, request_id=3, tenant=1, queue_s=nan)
    services = (Service.of(records([row]), RUN) for row in (lost, left))
    waits = [bool(service.waits(np.array([5.0]))[0]) for service in services]
    assert waits == [False, True]


def test_classes() -> None:
    """The better class is good, half of the worse one is; a request that never ended counts as bad."""
    made = [
        request(0.0, 1.0, 2.0, request_id=0, priority=-1),
        request(0.0, 1.0, 3.0, request_id=1, priority=4),
        waiting(0.0, request_id=2, priority=4),
    ]
    found = classes(records(made), Slo(ttft_s=1.5), np.ones(3, dtype=bool))
    assert found is not None
    assert list(found) == ["-1", "4"]
    assert (found["-1"]["attainment"], found["4"]["attainment"]) == (1.0, 0.5)
    assert (found["4"]["requests"], found["4"]["completed"]) == (2, 1)
    assert found["4"]["e2e_s"] == {"mean": 3.0, "p50": 3.0, "p99": 3.0}


def test_one_tenant_of_one_class_is_told_nothing() -> None:
    assert not {"fairness", "classes"} & set(summary(records(TWO[:2])))
    both = summary(records([*TWO, request(1.0, 2.0, 3.0, request_id=3, priority=1)]))
    assert both["fairness"]["jain_index"] == pytest.approx(0.5)
    assert list(both["classes"]) == ["0", "1"]


def test_the_mean_of_all_is_that_of_the_groups_each_weighed_by_its_number() -> None:
    """Under overload, too: whoever hangs up after a first token is in neither."""
    lost = request(0.0, 9.0, request_id=3, tenant=1, priority=1, status=TIMED_OUT)
    refused = waiting(0.0, request_id=4, status=DROPPED, reason=PROMPT_TOO_LONG, tenant=1, queue_s=nan)
    told = summary(records([*TWO, lost, refused, request(1.0, 2.0, 3.0, request_id=5, priority=1)]))
    whole = told["latency"]["ttft_s"]
    assert whole["n"] == 4
    for groups in (told["fairness"]["tenants"].values(), told["classes"].values()):
        assert sum(group["completed"] for group in groups) == whole["n"]
        total_s = sum(group["completed"] * group["ttft_s"]["mean"] for group in groups)
        assert total_s / whole["n"] == pytest.approx(whole["mean"])
    ends = ("requests", "completed", "dropped", "timed_out")
    other = told["fairness"]["tenants"]["1"]
    assert [other[end] for end in ends] == [3, 1, 1, 1]
    assert other["attainment"] == 0.0
