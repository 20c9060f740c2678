"""Processor sharing: in a decode batch whose steps grow with it, and on a link.

In M/G/1-PS a request that needs x seconds alone takes x/(1 - rho) in the mean, whatever the distribution of
x (Kleinrock, "Time-shared systems: a theoretical treatment", J. ACM 14(2), 1967; Sakata, Noguchi and
Oizumi, "An analysis of the M/G/1 queue under round-robin scheduling", Operations Research 19(2), 1971).
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from servesim.cluster.transfer import Links
from servesim.engine.clock import Clock
from servesim.engine.continuous import Continuous
from servesim.workload.arrivals import Poisson
from servesim.workload.lengths import Fixed, Geometric, Lengths, Uniform
from tests.costs import AffineStepTime
from tests.queueing.replications import REPLICATIONS, STEP_S, WARM_UP, assert_recovers, replicate
from tests.serving import Run, Service

SHARED = Service(Continuous(), AffineStepTime(step_s=0.0, sequence_s=STEP_S, prefill_token_s=STEP_S))


TWICE_AS_LONG = 2.0
#: Steps 3% longer: rho = 0.515.
MISTAKE = 1.03 / (1 - 0.515)


@pytest.mark.parametrize(
    "lengths", [Fixed(1, 1000), pytest.param(Geometric(1, 1000), marks=pytest.mark.slow)]
)
def test_a_batch_shares_the_processor(lengths: Lengths) -> None:
    """A step takes 1 ms per sequence, so n sequences get a token every n ms: 1/n of the speed each.

    Alone a request of n tokens takes n ms, 1 s in the mean; at 0.5 requests/s it takes 1/(1 - 0.5) = 2 times
    as long, whatever the lengths. Joining only at the end of a step adds a millisecond or two to 2 s.
    """

    def mean_e2e_s(run: Run) -> float:
        return float((run.column("finished_s") - run.column("sent_s"))[WARM_UP:].mean())

    assert_recovers(
        replicate(SHARED, Poisson(0.5), lengths, mean_e2e_s, 2000), TWICE_AS_LONG, mistake=MISTAKE
    )


def test_short_and_long_are_slowed_down_alike() -> None:
    """Outputs of 100 to 1,900 tokens: the mean of (time taken / time alone) is 2 as well."""

    def mean_slowdown(run: Run) -> float:
        taken_s = run.column("finished_s") - run.column("sent_s")
        return float((taken_s / (STEP_S * run.column("output_tokens")))[WARM_UP:].mean())

    slowdowns = replicate(SHARED, Poisson(0.5), Uniform(1, 1000, 0.9), mean_slowdown, 2000)
    assert_recovers(slowdowns, TWICE_AS_LONG, mistake=MISTAKE)


@pytest.mark.parametrize("sizes", ["exponential", "equal"])
def test_transfers_share_a_link(sizes: str) -> None:
    """100 bytes in the mean over a link of 100 bytes/s, 0.5 transfers/s: 1/(1 - 0.5) = 2 s, and the latency.

    The link is the only one of its source; each transfer has a target of its own that is twice as fast.
    """

    def mean_transfer_s(seed: int) -> float:
        rng, transfers = np.random.default_rng(seed), 3000
        starts_s = np.cumsum(rng.exponential(2.0, transfers)).tolist()
        bytes_ = (
            rng.exponential(100.0, transfers) if sizes == "exponential" else np.full(transfers, 100.0)
        ).tolist()
        clock, ends_s = Clock(), [0.0] * transfers
        links = Links(clock, [100.0], [200.0] * transfers, latency_s=0.25)

        def arrived(number: int) -> None:
            ends_s[number] = clock.now

        for number, start_s in enumerate(starts_s):
            clock.call_at(start_s, partial(links.send, 0, number, bytes_[number], partial(arrived, number)))
        clock.run_until()
        return float((np.array(ends_s) - starts_s)[WARM_UP:].mean())

    assert_recovers([mean_transfer_s(seed) for seed in range(REPLICATIONS)], 2.25, mistake=0.25 + MISTAKE)
