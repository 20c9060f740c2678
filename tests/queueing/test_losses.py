"""Customers who are lost: a waiting room with few places (M/M/1/K), and patience that ends (M/M/1+D).

Steps of 1 ms and geometric outputs of 1,000 tokens in the mean: services of mean 1 s, exponential but for the
steps.
"""

from __future__ import annotations

from dataclasses import replace
from math import exp

from servesim.cluster.admission import QueueLimit
from servesim.engine.continuous import Continuous
from servesim.engine.log import COMPLETED
from servesim.workload.arrivals import Poisson
from servesim.workload.client import Client
from servesim.workload.lengths import Geometric
from tests.costs import constant_step
from tests.queueing.replications import STEP_S, WARM_UP, assert_recovers, replicate
from tests.serving import Run, Service

ONE_AT_A_TIME = Service(Continuous(max_num_seqs=1), constant_step(STEP_S))
OUTPUTS = Geometric(1, 1000)


def lost(run: Run) -> float:
    """Return the share of requests that were not served."""
    return float((run.column("status")[WARM_UP:] != COMPLETED).mean())


def blocked(load: float, places: int) -> float:
    """Return the share that finds all places of an M/M/1/K taken, (1 - r) r^K / (1 - r^(K + 1)).

    (Kleinrock, Queueing Systems I, 1975, eq. 3.50.)
    """
    return float((1 - load) * load**places / (1 - load ** (places + 1)))


def test_a_short_queue_loses_as_many_as_an_m_m_1_k() -> None:
    """1.25 requests/s, one in service and two who wait: (1 - 1.25) 1.25^3 / (1 - 1.25^4) = 0.3388.

    With one place fewer it would be 0.4098.
    """
    service = replace(ONE_AT_A_TIME, admission=QueueLimit(2))
    shares = replicate(service, Poisson(1.25), OUTPUTS, lost, 1500)
    assert_recovers(shares, blocked(1.25, 3), mistake=blocked(1.25, 2))


def abandoned(rate_rps: float, patience_s: float) -> float:
    """Return the share that is not served in time, where services are exponential of mean 1 s.

    The wait that an arrival would have has density p l e^((l - 1) x) below the patience d and
    p l e^(l d - x) above it, p being the chance of an idle server (Barrer, "Queuing with impatient customers
    and ordered service", Operations Research 5, 1957); so p (1 + l (e^((l - 1) d) - 1) / (l - 1) +
    l e^((l - 1) d)) = 1, and p l e^((l - 1) d) are lost.
    """
    late = rate_rps * exp((rate_rps - 1) * patience_s)
    idle = 1 / (1 + rate_rps * (exp((rate_rps - 1) * patience_s) - 1) / (rate_rps - 1) + late)
    return idle * late


def test_patience_of_one_service_loses_as_many_as_an_m_m_1_d() -> None:
    """1.25 requests/s, who all wait for 1 s: 0.3987 leave. With 1.25 s of patience it would be 0.3761."""
    service = replace(ONE_AT_A_TIME, client=Client(ttft_timeout_s=1.0 + STEP_S))
    shares = replicate(service, Poisson(1.25), OUTPUTS, lost, 2500)
    assert_recovers(shares, abandoned(1.25, 1.0), mistake=abandoned(1.25, 1.25))
