"""One server: M/G/1 (Pollaczek-Khinchine) and GI/M/1.

The mean wait of M/G/1 is W = lambda E[S^2] / (2 (1 - rho)), rho = lambda E[S] (Pollaczek 1930, Khinchine
1932; Kleinrock, Queueing Systems I, 1975, eq. 5.70). For S = s n with n output tokens of mean m and
variance v, E[S^2] = s^2 (m^2 + v).
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import pytest
from scipy.optimize import brentq

from servesim.cluster.router import Random, RoundRobin
from servesim.engine.continuous import Continuous
from servesim.engine.static import Static
from servesim.workload.arrivals import Gamma, Poisson
from servesim.workload.lengths import Fixed, Geometric, Lognormal, Uniform
from servesim.workload.synthetic import Synthetic
from tests.costs import AffineStepTime, constant_step
from tests.queueing.replications import STEP_S, WRONG_STEP_S, assert_recovers, mean_of, replicate
from tests.serving import Service

ONE_AT_A_TIME = Service(Continuous(max_num_seqs=1), constant_step(STEP_S))
BATCHES_OF_ONE = Service(Static(batch_size=1, batch_timeout_s=0.0), constant_step(STEP_S))
SERVERS = pytest.mark.parametrize("service", [ONE_AT_A_TIME, BATCHES_OF_ONE], ids=["continuous", "static"])
WAIT = mean_of("queue_s")


def m_g_1_wait_s(rate_rps: float, mean: float, variance: float, step_s: float) -> float:
    """Return Pollaczek and Khinchine's mean wait for services of `mean` steps with that variance."""
    return rate_rps * step_s**2 * (mean**2 + variance) / (2 * (1 - rate_rps * step_s * mean))


def test_geometric_outputs_make_an_m_m_1() -> None:
    """Steps of 1 ms, outputs of 1,000 tokens in the mean, geometric; 0.5 requests/s.

    E[S] = 1 s, rho = 0.5; v = m (m - 1), so E[S^2] = 1.999 s^2 and W = 0.5 x 1.999 / (2 x 0.5) = 0.9995 s:
    that of M/M/1, rho/(1 - rho) x 1 s = 1 s, less half a step. With steps 3% longer it would be 1.093 s.
    """
    waits = replicate(ONE_AT_A_TIME, Poisson(0.5), Geometric(1, 1000), WAIT, 2800)
    assert_recovers(waits, 0.9995, mistake=m_g_1_wait_s(0.5, 1000, 999_000, WRONG_STEP_S))


def test_fixed_outputs_make_an_m_d_1() -> None:
    """Outputs of exactly 1,000 tokens: E[S^2] = 1 s^2, W = 0.5 x 1 / (2 x 0.5) = 0.5 s, half of M/M/1."""
    waits = replicate(ONE_AT_A_TIME, Poisson(0.5), Fixed(1, 1000), WAIT, 2500)
    assert_recovers(waits, 0.5, mistake=m_g_1_wait_s(0.5, 1000, 0, WRONG_STEP_S))


@SERVERS
def test_uniform_outputs_make_an_m_g_1(service: Service) -> None:
    """Outputs from 100 to 1,900 tokens, equally likely: v = (1801^2 - 1)/12 = 270,300 tokens^2.

    E[S^2] = 1 + 0.2703 = 1.2703 s^2, W = 0.5 x 1.2703 / (2 x 0.5) = 0.63515 s.
    """
    waits = replicate(service, Poisson(0.5), Uniform(1, 1000, range_ratio=0.9), WAIT, 2000)
    assert_recovers(waits, 0.63515, mistake=m_g_1_wait_s(0.5, 1000, 270_300, WRONG_STEP_S))


def test_every_wait_follows_from_the_one_before() -> None:
    """W' = max(0, W + S - A): the next request waits for what is left of the last one's wait and service.

    (Lindley, "The theory of queues with a single server", 1952.) Here A is the gap between the two sendings
    and S the last one's service, so every single wait is known from the traffic, to 0.1 us.
    """
    run = ONE_AT_A_TIME.serve(Synthetic(Poisson(0.8), Geometric(1, 1000), requests=2000))
    services_s, gaps_s = STEP_S * run.column("output_tokens"), np.diff(run.column("sent_s"))
    changes_s = services_s[:-1] - gaps_s
    waits_s = list(accumulate(changes_s, lambda wait_s, change_s: max(0.0, wait_s + change_s), initial=0.0))
    assert max(waits_s) > 5
    assert np.abs(run.column("queue_s") - waits_s).max() < 1e-6


def test_prompts_in_chunks_make_an_m_g_1() -> None:
    """Prompts of 1,000 tokens in the mean, log-normal, standard deviation half of that; 1 ms per token.

    One output token. Whatever the chunks (here 300 tokens at most), S = 1 ms x prompt, E[S^2] = 1 + 0.25 s^2,
    and W = 0.5 x 1.25 / (2 x 0.5) = 0.625 s.
    """
    step_time = AffineStepTime(step_s=0.0, prefill_token_s=STEP_S)
    service = Service(Continuous(max_num_seqs=1, max_num_batched_tokens=300), step_time)
    waits = replicate(service, Poisson(0.5), Lognormal(1000, 1, input_cv=0.5, output_cv=0), WAIT, 2000)
    assert_recovers(waits, 0.625, mistake=m_g_1_wait_s(0.5, 1000, 250_000, WRONG_STEP_S))


def test_random_routing_makes_independent_queues() -> None:
    """1.5 requests/s over three replicas at random are three M/D/1 at 0.5 requests/s: W = 0.5 s.

    (Splitting a Poisson process at random gives independent Poisson processes.)
    """
    service = Service(Continuous(max_num_seqs=1), constant_step(STEP_S), replicas=3, router=Random())
    waits = replicate(service, Poisson(1.5), Fixed(1, 1000), WAIT, 1500)
    assert_recovers(waits, 0.5, mistake=m_g_1_wait_s(0.5, 1000, 0, WRONG_STEP_S))


def gi_m_1_wait_s(rate_rps: float, shape: float, mean_s: float = 1.0) -> float:
    """Return the mean wait behind gamma gaps of that shape, for exponential service.

    W = E[S] sigma/(1 - sigma), where 0 < sigma < 1 solves sigma = A((1 - sigma)/E[S]) and
    A(z) = (k r/(k r + z))^k is the Laplace transform of a gap of rate r and shape k (Kleinrock, Queueing
    Systems I, eqs. 6.4 and 6.31).
    """

    def excess(sigma: float) -> float:
        return float((shape * rate_rps / (shape * rate_rps + (1 - sigma) / mean_s)) ** shape - sigma)

    sigma = float(brentq(excess, 0.0, 1 - 1e-9))
    return mean_s * sigma / (1 - sigma)


def test_poisson_arrivals_are_a_special_case() -> None:
    """Shape 1: sigma = r/(r + 1 - sigma) has the root sigma = r, so W = r/(1 - r), as M/M/1 has it."""
    assert gi_m_1_wait_s(0.6, 1.0) == pytest.approx(1.5)


def test_round_robin_makes_arrivals_steadier() -> None:
    """Round robin gives each of three replicas every third request: gaps of Erlang shape 3.

    1.5 requests/s in all, outputs of 1,000 tokens in the mean, geometric: sigma = (1.5/(2.5 - sigma))^3 has
    the root 0.33053, and W = 0.4937 s, half of the wait behind a random router.
    """
    service = Service(Continuous(max_num_seqs=1), constant_step(STEP_S), replicas=3, router=RoundRobin())
    waits = replicate(service, Poisson(1.5), Geometric(1, 1000), WAIT, 2500)
    assert gi_m_1_wait_s(0.5, 3.0) == pytest.approx(0.4937, abs=5e-5)
    assert_recovers(waits, 0.4937, mistake=gi_m_1_wait_s(0.5, 3.0, 1.03))


@pytest.mark.slow
def test_burstier_arrivals_wait_longer() -> None:
    """Gamma gaps with burstiness 0.5 (scv 2) at 0.5 requests/s: W = 1.7808 s, against 1 s behind Poisson."""
    waits = replicate(ONE_AT_A_TIME, Gamma(0.5, burstiness=0.5), Geometric(1, 1000), WAIT, 5000)
    assert gi_m_1_wait_s(0.5, 0.5) == pytest.approx(1.7808, abs=5e-5)
    assert_recovers(waits, 1.7808, mistake=gi_m_1_wait_s(0.5, 0.5, 1.03))
