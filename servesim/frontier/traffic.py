"""The traffic that a plan is for: how dense it is, and how much of it makes a fair trial."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import Any, NamedTuple

from servesim.results.slo import Slo
from servesim.streams import Streams
from servesim.workload.arrivals import Renewal
from servesim.workload.batch import Batch
from servesim.workload.replay import Replay
from servesim.workload.sessions import Sessions
from servesim.workload.synthetic import Synthetic
from servesim.workload.trace import Trace

Workload = Synthetic | Sessions | Trace | Replay

#: Requests that may miss the objective, all seeds together: so many that chance weighs little.
MISSES = 20
#: The strictest attainment that requests are added for.
STRICTEST = 0.999
#: Requests of a run at the least.
FEWEST = 1000
#: Stays of a request that just meets the limits for which a run sends, so that most of it is steady.
STAYS = 8
#: Requests of a run at the most: minutes of simulation.
MOST = 200_000
#: Seconds per output token that are assumed where no limit says what is hoped for.
LEISURELY_S = 0.05


class Trial(NamedTuple):
    """How often a cluster is tried, and with how many requests each time.

    ``at_a_time`` are requests that come within eight stays of one; 0 where ``requests`` are so many, whatever
    the rate.
    """

    requests: int
    seeds: tuple[int, ...]
    at_a_time: float = 0.0

    @property
    def long_enough(self) -> bool:
        """Whether a run sends for eight stays, or for as long as it was told to."""
        return self.requests >= self.at_a_time

    def requests_at(self, factor: float) -> int:
        """Return the requests of each run when they come ``factor`` times as densely."""
        return max(self.requests, min(ceil(self.at_a_time * factor), MOST))


def fair_trial(workload: Workload, slo: Slo, seeds: tuple[int, ...]) -> Trial:
    """Return a trial whose verdict is not one of chance or of warm-up.

    Each seed sends at least twice its share of what it takes for 20 requests to be allowed to miss (half of
    a run may be warm-up), and goes on for eight stays of a request that just meets the limits; but it sends
    200,000 at the most. A trace is tried with all its rows.
    """
    if not isinstance(workload, Synthetic):
        return Trial(drawn(workload, seeds[0]).size, seeds)
    arrivals: Any = workload.arrivals
    missed = MISSES / (1 - min(slo.attainment, STRICTEST))
    _, outputs = workload.lengths.mean
    stay_s = (slo.ttft_s or 0.0) + outputs * (slo.tpot_s or LEISURELY_S)
    at_a_time = STAYS * arrivals.rate_rps * min(stay_s, slo.e2e_s or stay_s)
    requests = max(FEWEST, ceil(2 * missed / len(seeds)), ceil(at_a_time))
    return Trial(min(requests, MOST), seeds, at_a_time)


def scaled(workload: Workload, factor: float) -> Workload:
    """Return the same requests, sent ``factor`` times as densely."""
    if isinstance(workload, Trace):
        return replace(workload, rate_scale=workload.rate_scale * factor)
    if isinstance(workload, Replay):
        return replace(workload, sent_s=workload.sent_s / factor)
    arrivals: Any = workload.arrivals
    return replace(workload, arrivals=replace(arrivals, rate_rps=arrivals.rate_rps * factor))


def drawn(workload: Workload, seed: int) -> Batch:
    """Return the requests that a run with this seed sends."""
    return Batch.joined(workload.batches(Streams(seed)))


def has_a_rate(workload: Workload) -> bool:
    """Say whether the traffic is the same all the time, whatever becomes of it, or as recorded."""
    if isinstance(workload, (Synthetic, Sessions)):
        return isinstance(workload.arrivals, Renewal)
    return workload.open_loop
