"""Classes: who is next, and who makes room."""

import pytest

from servesim.check import ConfigError, check
from servesim.cluster.disaggregated import Disaggregated
from servesim.engine.continuous import Continuous
from servesim.engine.queue_order.priority import Priority, RunningByClass
from servesim.workload.origin import Origin
from servesim.workload.request import Request
from tests.costs import constant_step
from tests.serving import Service


def request(number: int, priority: int) -> Request:
    return Request(number, 0.0, 1, 1, Origin(priority=priority))


def test_the_last_of_the_worst_class_goes_first() -> None:
    running, requests = RunningByClass(), [request(number, number % 3) for number in range(6)]
    for each in requests:
        running[each] = None
    del running[requests[5]]
    assert [each.id for each in running.worse_than(0)] == [2, 4, 1]
    assert [running.popitem()[0].id for _ in range(5)] == [2, 4, 1, 3, 0]
    assert not running


def test_a_better_class_overtakes() -> None:
    """One at a time. While the first is served three come, of classes 2, 1 and 1."""
    origins = Origin(), Origin(priority=2), Origin(priority=1), Origin(priority=1)
    service = Service(
        Continuous(max_num_seqs=1, queue_order=Priority()), constant_step(0.01), origins=origins
    )
    run = service.serve([(0.0, 1, 9), (0.01, 1, 9), (0.02, 1, 9), (0.03, 1, 9)])
    assert [row["request_id"] for row in run.completed] == [0, 2, 3, 1]


def test_the_worst_class_makes_room() -> None:
    """4 blocks of 2; both have 3 tokens in and 4 out, and at the fifth token one has to go: it is A."""
    scheduler = Continuous(block_size=2, queue_order=Priority(), enable_prefix_caching=False)
    service = Service(
        scheduler, constant_step(0.01), kv_blocks=4, origins=(Origin(priority=1), Origin(priority=0))
    )
    run = service.serve([(0.0, 3, 4), (0.0, 3, 4)])
    assert [row["preemptions"] for row in run.by_id] == [1, 0]
    assert [row["request_id"] for row in run.completed] == [1, 0]


def test_a_better_class_throws_out_as_many_as_it_needs() -> None:
    """8 blocks of 2, three of class 1 and 2 with two blocks each. B and C go, A stays.

    Sent after their first token, D has 7 tokens and needs 4 blocks; 2 are free, but each of those that
    decode takes one more in the step that D may join: 8 - 3 - 1 for A alone.
    """
    scheduler = Continuous(block_size=2, queue_order=Priority(preempt=True), enable_prefix_caching=False)
    origins = [Origin(priority=priority) for priority in (1, 2, 2, 0)]
    service = Service(scheduler, constant_step(1.0), kv_blocks=8, origins=origins)
    run = service.serve([(0.0, 4, 3), (0.0, 4, 3), (0.0, 4, 3), (0.5, 7, 1)])
    assert [row["preemptions"] for row in run.by_id] == [0, 1, 1, 0]
    assert run.by_id[3]["first_token_s"] == 2.0
    assert [row["preempted"] for row in run.leaps][:2] == [0, 2]


def test_what_does_not_go_with_throwing_out() -> None:
    order = Priority(preempt=True)
    with pytest.raises(ConfigError, match="preempt = True: must be false unless prefill_policy=stall_free"):
        check(Continuous(queue_order=order, prefill_policy="prefill_first"))
    with pytest.raises(ConfigError, match="preempt = True: must be false: nobody is thrown out"):
        check(Disaggregated(queue_order=order))
    check(Continuous(queue_order=order))
