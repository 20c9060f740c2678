"""Independent replications of a degenerate service, and what their means must agree with.

A queue of theory is a service stripped down: one sequence at a time (or few), steps of constant length, a
prompt of one token. A request of n output tokens then takes n steps, as its first token leaves with the step
that computes its prompt. Seeds are fixed, so a test that passes once passes always; a confidence of 99% says
how far chance may have moved the mean of these seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from servesim.workload.arrivals import ClosedLoop, OpenLoop
from servesim.workload.lengths import Lengths
from servesim.workload.synthetic import Synthetic
from tests.intervals import mean_interval
from tests.serving import Run, Service

CONFIDENCE = 0.99
REPLICATIONS = 20
WARM_UP = 200

T = TypeVar("T")

#: One step, in seconds: a thousand of them make the mean service of most stories 1 s.
STEP_S = 0.001
#: A step that an engine has got wrong by 3%.
WRONG_STEP_S = 1.03 * STEP_S


def replicate(
    service: Service,
    arrivals: OpenLoop | ClosedLoop,
    lengths: Lengths,
    measure: Callable[[Run], T],
    requests: int,
) -> list[T]:
    """Return a measure of each replication of so many requests, as few as tell theory from mistake."""
    workload = Synthetic(arrivals, lengths, requests=requests)
    return [measure(replace(service, seed=seed).serve(workload)) for seed in range(REPLICATIONS)]


def mean_of(*fields: str) -> Callable[[Run], float]:
    """Return a measure: the mean of the sum of fields over the requests after the warm-up."""
    return lambda run: sum(float(run.column(field)[WARM_UP:].mean()) for field in fields)


def assert_recovers(sample: Sequence[float], theory: float, *, mistake: float) -> None:
    """Assert that the interval of the replications' mean holds the theory, but not a near mistake."""
    interval = mean_interval(sample, CONFIDENCE)
    assert theory in interval, f"theory says {theory:.4f}, the runs {interval.low:.4f} to {interval.high:.4f}"
    assert mistake not in interval, (
        f"{mistake:.4f} lies between {interval.low:.4f} and {interval.high:.4f}, too"
    )
