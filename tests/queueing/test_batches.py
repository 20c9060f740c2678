"""Static batching at light load: how long it takes until a batch is full, or its time is up."""

from __future__ import annotations

import pytest

from servesim.engine.static import Static
from servesim.workload.arrivals import Poisson
from servesim.workload.lengths import Fixed
from tests.costs import constant_step
from tests.queueing.replications import assert_recovers, mean_of, replicate
from tests.serving import Service


@pytest.mark.parametrize(("batch_size", "wait_s"), [(2, 0.5), (8, 3.5)])
def test_a_batch_fills(batch_size: int, wait_s: float) -> None:
    """At 1 request/s request i of b waits for b - i more: (b - 1)/2 s in the mean; 2: 0.5 s, 8: 3.5 s.

    A batch takes 0.1 ms, so none is ever full before the last one has ended.
    """
    service = Service(Static(batch_size, batch_timeout_s=1e6), constant_step(1e-4))
    waits = replicate(service, Poisson(1.0), Fixed(1, 1), mean_of("queue_s"), 1000)
    assert_recovers(waits, wait_s, mistake=1.03 * wait_s)


def test_a_batch_times_out() -> None:
    """Batches that never fill start T = 2 s after their first request, at 1.5 requests/s.

    The first waits T; lambda T = 3 others come in the meantime, and wait T/2 in the mean. Over all requests:
    (T + lambda T x T/2)/(1 + lambda T) = (2 + 3)/(1 + 3) = 1.25 s.
    """
    service = Service(Static(batch_size=1000, batch_timeout_s=2.0), constant_step(1e-4))
    waits = replicate(service, Poisson(1.5), Fixed(1, 1), mean_of("queue_s"), 1000)
    assert_recovers(waits, 1.25, mistake=1.03 * 1.25)
