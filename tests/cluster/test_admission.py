"""Which requests are turned away."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from servesim.cluster.admission import Forecast, QueueLimit, TtftSlo
from servesim.engine.continuous import Continuous
from servesim.engine.log import COMPLETED, DROPPED, OVER_SLO, QUEUE_FULL
from servesim.workload.arrivals import Poisson
from servesim.workload.lengths import Geometric
from servesim.workload.synthetic import Synthetic
from tests.costs import AffineStepTime, constant_step
from tests.serving import Run, Service

SECOND = constant_step(1.0)
#: A thousand prompt tokens a second, and steps that are short beside their prefill.
PREFILL = AffineStepTime(step_s=0.001, sequence_s=1e-5, prefill_token_s=1e-3)


def test_a_queue_holds_so_many_and_no_more() -> None:
    """One runs and two wait; two replicas have twice as many places in queues, a pool as many as given."""
    service = Service(Continuous(max_num_seqs=1), SECOND, admission=QueueLimit(2))
    run = service.serve([(0.0, 8, 9), *[(0.5, 8, 1)] * 4])
    assert [(row["status"], row["reason"]) for row in run.by_id] == [(COMPLETED, 0)] * 3 + [
        (DROPPED, QUEUE_FULL)
    ] * 2
    assert run.by_id[-1]["replica"] == -1
    twice = replace(service, replicas=2)
    one, both = (replace(twice, admission=QueueLimit(2, of=of)) for of in ("replica", "pool"))
    requests = [(0.0, 8, 9)] * 2 + [(0.5, 8, 1)] * 6
    assert [len(each.serve(requests).completed) for each in (one, both)] == [6, 4]
    assert all(count == 0 for count in run.cluster.groups[0]._outstanding)


def test_an_idle_replica_takes_anything() -> None:
    run = Service(step_time=PREFILL, admission=TtftSlo(0.5)).serve([(0.0, 5000, 1), (60.0, 5000, 1)])
    assert len(run.completed) == 2


def test_what_waits_is_prefilled_at_the_pace_of_full_steps() -> None:
    """1,000 tokens wait at 0.1 s behind one step of 1 s: another 1,000 come to 2 s, at 1,000 tokens/s."""
    service = Service(Continuous(max_num_batched_tokens=1000), PREFILL)
    run = Run(service, [(0.0, 1000, 1), (0.1, 1000, 1), (0.2, 1000, 1)])
    run.clock.run_until(0.15)
    request = next(iter(run.engines[0].waiting))
    assert Forecast(run.engines[0]).ttft_s(request) == pytest.approx(2.0, rel=0.01)
    loads = [
        replace(service, admission=TtftSlo(s)).serve([(0.1 * i, 1000, 1) for i in range(9)]) for s in (2.5, 5)
    ]
    dropped = [{row["reason"] for row in run.requests if row["status"] == DROPPED} for run in loads]
    assert dropped == [{OVER_SLO}, {OVER_SLO}]
    assert [len(run.completed) for run in loads] == [3, 5]


def overloaded(kind: str, admission: TtftSlo | None) -> Run:
    """Serve 1.5 times what a service can do: short of prefill, or of places to decode."""
    services = {
        "prefill": Service(Continuous(max_num_batched_tokens=512), PREFILL),
        "places": Service(Continuous(max_num_seqs=8), constant_step(0.01)),
        "blocks": Service(Continuous(block_size=16), constant_step(0.01), kv_blocks=160),
    }
    lengths = Geometric(200, 50)
    rates_rps = {"prefill": 7.5, "places": 24.0, "blocks": 33.0}
    workload = Synthetic(Poisson(rates_rps[kind]), lengths, requests=1500)
    return replace(services[kind], admission=admission).serve(workload)


@pytest.mark.parametrize("kind", ["prefill", "places", "blocks"])
def test_under_overload_those_admitted_are_served_in_time(kind: str) -> None:
    """Whatever is short. Without admission control the wait grows as long as requests come."""
    limit_s = 2.0
    free, kept = (overloaded(kind, admission) for admission in (None, TtftSlo(limit_s)))
    ttft_s = [
        np.array([row["first_token_s"] - row["sent_s"] for row in run.completed]) for run in (free, kept)
    ]
    assert np.percentile(ttft_s[0], 99) > 5 * limit_s
    assert 0.5 * limit_s < np.percentile(ttft_s[1], 99) < 1.5 * limit_s
    good = [int((times <= limit_s).sum()) for times in ttft_s]
    assert good[1] > 2 * good[0]
