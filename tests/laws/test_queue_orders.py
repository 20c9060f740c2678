"""What each queue order promises, and what none of them may change."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from servesim.engine.continuous import Continuous
from servesim.engine.queue_order.fair import Fair
from servesim.engine.queue_order.keyed import EarliestDeadline, ShortestFirst
from servesim.engine.queue_order.order import Fcfs, QueueOrder
from servesim.engine.queue_order.priority import Priority
from servesim.workload.origin import Origin
from tests.costs import AffineStepTime, constant_step
from tests.serving import Run, Sent, Service

ORDERS = (ShortestFirst(), Priority(), EarliestDeadline(), Fair())
#: KV blocks of 4 tokens: room for three requests or four.
TIGHT = {"block_size": 4, "max_num_batched_tokens": 30}
STEP_TIME = AffineStepTime(step_s=0.01, context_s=1e-6, prefill_token_s=1e-4)


def serve(
    order: QueueOrder, traffic: list[Sent], origins: list[Origin], horizon_s: float | None = None
) -> Run:
    service = Service(Continuous(queue_order=order, **TIGHT), STEP_TIME, kv_blocks=40, origins=origins)
    return service.serve(traffic, horizon_s=horizon_s)


def drawn(count: int, seed: int = 0) -> list[Sent]:
    """Draw requests of 20 tokens in and 1 to 60 out, a few every step."""
    rng = np.random.default_rng(seed)
    moments_s = np.cumsum(rng.exponential(0.05, count)).tolist()
    return [(sent_s, 20, int(rng.integers(1, 61))) for sent_s in moments_s]


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_where_all_are_alike_every_order_is_fcfs(order: QueueOrder) -> None:
    """Prompts of one length, one class, one tenant, one slack: the same rows, preemptions included."""
    traffic, origins = drawn(150), [Origin(tenant=1, priority=2, slack_s=3.0)] * 150
    run, plain = (serve(each, traffic, origins) for each in (order, Fcfs()))
    assert sum(row["preemptions"] for row in plain.requests) > 50
    for row, as_before in zip(run.requests, plain.requests, strict=True):
        assert row == pytest.approx(as_before, rel=1e-12, nan_ok=True)


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_no_order_loses_work(order: QueueOrder) -> None:
    """Every request gets its tokens, and every block is given back."""
    rng = np.random.default_rng(1)
    origins = [
        Origin(tenant=int(rng.integers(3)), priority=int(rng.integers(3)), slack_s=float(rng.integers(1, 5)))
        for _ in range(150)
    ]
    run = serve(order, drawn(150), origins)
    assert [row["generated"] for row in run.by_id] == [outputs for _, _, outputs in drawn(150)]
    gaps = sum(row["steps"] * row["decodes"] for row in run.leaps) + len(run.gaps)
    assert gaps == sum(outputs - 1 for _, _, outputs in drawn(150))
    assert run.engines[0].kv.free == 40


#: Two tenants with more to do than can be done: one with long prompts and many of them.
BACKLOG: list[Sent] = [(0.0, *((100, 5) if number % 3 else (10, 40))) for number in range(300)]
TENANTS = [Origin(tenant=0 if number % 3 else 1) for number in range(300)]
KV_TOKENS = 40 * 4


def services(order: QueueOrder, horizon_s: float) -> list[float]:
    """Return the service of each tenant up to a horizon, prompts whole as soon as they are admitted."""
    run, served = serve(order, BACKLOG, TENANTS, horizon_s), [0.0, 0.0]
    for row in run.requests:
        admitted = not np.isnan(row["queue_s"])
        served[int(row["tenant"])] += admitted * row["input_tokens"] + 2 * row["generated"]
    return served


def test_fair_shares_differ_by_no_more_than_the_bound() -> None:
    """While two tenants are backlogged, their services differ by 2 x max(w_p L, w_q M) at most.

    (Sheng et al., OSDI 2024, theorem 4.4.) L is the longest prompt, 100 tokens, and M the tokens that the
    batch may hold, 160: so by no more than 640 tokens, in any interval. First come, first served, they differ
    by thousands.
    """
    horizons_s = 0.5, 3.0, 5.0, 7.0, 10.0, 13.0
    fair, plain = ([services(order, horizon_s) for horizon_s in horizons_s] for order in (Fair(), Fcfs()))
    assert 5000 < fair[-1][1] < 100 * (10 + 2 * 40)  # tenant 1 is still backlogged

    def most(served: list[list[float]]) -> float:
        pairs = combinations([[0.0, 0.0], *served], 2)
        return max(abs((late[0] - early[0]) - (late[1] - early[1])) for early, late in pairs)

    assert most(fair) <= 2 * max(1 * 100, 2 * KV_TOKENS)
    assert most(plain) > 3000


def test_who_may_throw_others_out_does_not_notice_them() -> None:
    """One at a time, all on a grid of steps: the better class is served as if it were alone.

    Without ``preempt`` it waits for whoever is being served.
    """
    rng = np.random.default_rng(2)
    moments_s = (np.sort(rng.integers(0, 4000, 120)) * 0.01).tolist()
    classes = rng.integers(0, 2, 120).tolist()
    traffic = [(sent_s, 1, int(rng.integers(1, 40))) for sent_s in moments_s]
    better = [sent for sent, priority in zip(traffic, classes, strict=True) if priority == 0]

    def ends_s(order: QueueOrder, traffic: list[Sent], priorities: list[int]) -> list[float]:
        origins = [Origin(priority=priority) for priority in priorities]
        scheduler = Continuous(max_num_seqs=1, queue_order=order)
        run = Service(scheduler, constant_step(0.01), origins=origins).serve(traffic)
        return [row["finished_s"] for row in run.by_id if row["priority"] == 0]

    alone_s = ends_s(Fcfs(), better, [0] * len(better))
    assert ends_s(Priority(preempt=True), traffic, classes) == pytest.approx(alone_s, abs=1e-6)
    assert ends_s(Priority(), traffic, classes) != pytest.approx(alone_s, abs=0.1)
