"""Counters of tenants, one event at a time."""

from __future__ import annotations

from servesim.engine.queue_order.fair_queue import UNIT, FairQueue
from servesim.workload.origin import Origin
from servesim.workload.request import Request

A, B, C = range(3)


def request(tenant: int, input_tokens: int = 10, output_tokens: int = 5) -> Request:
    return Request(0, 0.0, input_tokens, output_tokens, Origin(tenant=tenant))


def queue(*tenants: int) -> FairQueue:
    """Return a queue in which each of these tenants has a request of 10 tokens."""
    made = FairQueue(1.0, 2.0, block_size=16)
    for tenant in tenants:
        made.append(request(tenant))
    return made


def counter(queue: FairQueue, tenant: int) -> float:
    return queue.account(request(tenant)).counter(queue.decodes.step) * UNIT


def served(queue: FairQueue, count: int) -> list[int]:
    return [queue.popleft().origin.tenant for _ in range(count)]


def test_whoever_was_served_least_is_next() -> None:
    """Each request is charged 10 + 2 x 1 when it is admitted: the three take turns, first come first."""
    assert served(queue(A, A, A, B, B, C), 6) == [A, B, C, A, B, A]


def test_weights_are_shares() -> None:
    """With weights of 2 to 1, two of three are A's."""
    tenants = queue(*[B] * 9)
    for _ in range(9):
        tenants.append(Request(0, 0.0, 10, 5, Origin(tenant=A, weight=2.0)))
    assert served(tenants, 9).count(A) == 6


def test_tokens_are_charged_as_they_are_emitted() -> None:
    """10 + 2 at admission, 2 for each of the 3 steps that it decodes, and nothing when it has gone."""
    tenants = queue(A, A)
    first = tenants.popleft()
    first.generated, first.computed = 1, 10
    tenants.decodes.step = 7
    tenants.decodes.join(first)
    assert counter(tenants, A) == 12
    tenants.decodes.step += 3
    assert counter(tenants, A) == 18
    tenants.decodes.leave(first)
    tenants.decodes.step += 3
    assert counter(tenants, A) == 18
    tenants.appendleft(first)
    first.preemptions = 1
    assert tenants.popleft() is first
    assert counter(tenants, A) == 20  # the token that ends the recompute; the prompt is not charged again


def test_who_comes_back_is_lifted_to_the_least_of_those_there() -> None:
    """A has been served 12 twice, B 12 once; C comes and has saved up nothing."""
    tenants = queue(A, A, A, B, B)
    assert served(tenants, 3) == [A, B, A]
    tenants.append(request(C))
    assert tenants[0].origin.tenant == B  # 12, like C's; but B's request was there before
    assert [counter(tenants, tenant) for tenant in (A, B, C)] == [24, 12, 12]


def test_who_comes_to_an_empty_queue_is_lifted_to_the_last_that_was_there() -> None:
    tenants = queue(A, A)
    assert served(tenants, 2) == [A, A]
    tenants.append(request(B))
    tenants.append(request(A))
    assert served(tenants, 1) == [B]
    assert counter(tenants, B) == 24 + 12


def test_another_tenant_comes_next_after_the_steps_told() -> None:
    """A has 24 and three that decode, B 36 and C 37: at +2 x 3 a step A passes 36 after more than 2 steps."""
    tenants = queue(A, A, A, A, B, C, C)
    for account, tokens in ((A, 20), (B, 36), (C, 37)):
        tenants.account(request(account)).input_tokens += tokens
    tenants[0]
    tenants.account(request(A)).decoding = 3
    tenants.account(request(A)).input_tokens += 4
    assert tenants.steps_to_change() == 3
    tenants.decodes.step = 2
    assert tenants[0].origin.tenant == A
    tenants.decodes.step = 3
    assert tenants[0].origin.tenant == B


def test_who_goes_is_not_charged() -> None:
    tenants = queue(A, B)
    gone = tenants[0]
    tenants.remove(gone)
    assert len(tenants) == 1
    assert list(tenants) == [tenants[0]]
    assert counter(tenants, A) == 0
