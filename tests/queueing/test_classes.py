"""One server and classes: M/G/1 with priorities that do not interrupt (Cobham), and the shortest job first.

With classes 1, 2, ... of rates l_k and services S_k, the mean wait of class k is
W_k = W_0 / ((1 - s_(k-1)) (1 - s_k)), W_0 = sum of l_i E[S_i^2] / 2, s_k = sum over i <= k of l_i E[S_i]
(Cobham, "Priority assignment in waiting line problems", 1954; Kleinrock, Queueing Systems II, 1976).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from servesim.engine.continuous import Continuous
from servesim.engine.queue_order.keyed import ShortestFirst
from servesim.engine.queue_order.order import Fcfs, QueueOrder
from servesim.engine.queue_order.priority import Priority
from servesim.workload.origin import Origin
from tests.costs import constant_step
from tests.queueing.replications import REPLICATIONS, WARM_UP, assert_recovers
from tests.serving import Run, Sent, Service

STEP_S = 0.001
#: Requests per second and output tokens of each class: loads of 0.3 and 0.4.
RATES_RPS, OUTPUTS = (0.6, 0.4), (500, 1000)


def cobham_s() -> list[float]:
    """Return the mean wait of each class."""
    residual_s = sum(
        rate * (STEP_S * tokens) ** 2 / 2 for rate, tokens in zip(RATES_RPS, OUTPUTS, strict=True)
    )
    before = np.cumsum([0.0, *(rate * STEP_S * n for rate, n in zip(RATES_RPS, OUTPUTS, strict=True))])
    return [residual_s / ((1 - before[k]) * (1 - before[k + 1])) for k in range(2)]


def traffic(seed: int, requests: int) -> tuple[list[Sent], list[Origin]]:
    """Draw requests of both classes; the prompt is as long as the class's output, and costs no more."""
    rng = np.random.default_rng(seed)
    sent_s = np.cumsum(rng.exponential(1 / sum(RATES_RPS), requests)).tolist()
    kinds = (rng.random(requests) > RATES_RPS[0] / sum(RATES_RPS)).astype(int).tolist()
    sent = [(at_s, OUTPUTS[kind], OUTPUTS[kind]) for at_s, kind in zip(sent_s, kinds, strict=True)]
    return sent, [Origin(priority=kind) for kind in kinds]


def runs(order: QueueOrder, requests: int) -> list[Run]:
    service = Service(Continuous(max_num_seqs=1, queue_order=order), constant_step(STEP_S))
    drawn = [traffic(seed, requests) for seed in range(REPLICATIONS)]
    return [replace(service, origins=origins).serve(sent) for sent, origins in drawn]


def wait_s(run: Run, priority: int) -> float:
    of_class = run.column("priority")[WARM_UP:] == priority
    return float(run.column("queue_s")[WARM_UP:][of_class].mean())


@pytest.mark.parametrize("order", [Priority(), ShortestFirst(), ShortestFirst("output")], ids=str)
def test_classes_wait_as_cobham_says(order: QueueOrder) -> None:
    """0.6/s of 0.5 s before 0.4/s of 1 s: waits of 0.393 s and 1.310 s."""
    served, theory_s = runs(order, 2500), cobham_s()
    for priority in range(2):
        waits_s = [wait_s(run, priority) for run in served]
        assert_recovers(waits_s, theory_s[priority], mistake=1.1 * theory_s[priority])


def test_the_shortest_first_waits_least_on_average() -> None:
    """In every replication the mean wait of all is less than in the order of coming."""
    for first, plain in zip(runs(ShortestFirst(), 500), runs(Fcfs(), 500), strict=True):
        assert first.column("queue_s").mean() < plain.column("queue_s").mean()
