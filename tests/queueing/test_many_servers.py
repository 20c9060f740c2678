"""Several requests at once: M/M/c and M/G/infinity."""

from __future__ import annotations

from math import factorial

import numpy as np
import pytest

from servesim.engine.continuous import Continuous
from servesim.workload.arrivals import Poisson
from servesim.workload.lengths import Fixed, Geometric
from tests.costs import constant_step
from tests.queueing.replications import STEP_S, WARM_UP, assert_recovers, mean_of, replicate
from tests.serving import Run, Service

FOUR_SLOTS = Service(Continuous(max_num_seqs=4), constant_step(STEP_S))
FOUR_BLOCKS = Service(Continuous(block_size=2**14), constant_step(STEP_S), kv_blocks=4)


def erlang_c(servers: int, load: float) -> float:
    """Return the probability of a wait in M/M/c (Erlang 1917; Kleinrock, Queueing Systems I, eq. 3.43)."""
    waiting = load**servers / factorial(servers) / (1 - load / servers)
    return waiting / (sum(load**n / factorial(n) for n in range(servers)) + waiting)


@pytest.mark.slow
@pytest.mark.parametrize("service", [FOUR_SLOTS, FOUR_BLOCKS], ids=["slots", "KV blocks"])
def test_four_at_a_time_make_an_m_m_4(service: Service) -> None:
    """Steps of 1 ms however many sequences they hold; 1,000 tokens in the mean; 3 requests/s; room for four.

    Each sequence is a server. The load is 3, Erlang's C is 0.5094, and W = C/(c - lambda) = 0.5094 s; joining
    only at the end of a step adds half a step (0.0005 s) at most. Room is four slots, or four KV blocks that
    hold one sequence each.
    """
    waits = replicate(service, Poisson(3.0), Geometric(1, 1000), mean_of("queue_s"), 3200)
    assert erlang_c(4, 3.0) == pytest.approx(0.5094, abs=5e-5)
    assert_recovers(waits, 0.5094, mistake=erlang_c(4, 3.09) / (4 / 1.03 - 3))


def test_an_arrival_waits_for_half_a_step() -> None:
    """Where every request finds a place, it waits for the end of the step under way, and for that alone.

    Steps of 10 ms, outputs of 100 tokens, 30 requests/s: 30 are in service in the mean, so hardly ever none
    (e^-30). What is left of the step is uniform between 0 and 10 ms: 5 ms in the mean, variance 10^2/12 ms^2.
    """
    service = Service(Continuous(), constant_step(0.01))

    def mean_and_variance(run: Run) -> tuple[float, float]:
        waits_s = run.column("queue_s")[WARM_UP:]
        return float(np.mean(waits_s)), float(np.var(waits_s))

    means, variances = zip(
        *replicate(service, Poisson(30.0), Fixed(1, 100), mean_and_variance, 1500), strict=True
    )
    assert_recovers(means, 0.005, mistake=0.00515)
    assert_recovers(variances, 0.01**2 / 12, mistake=0.0103**2 / 12)
