"""Running points: in this process, or on several at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import monotonic

from servesim.scenario import Scenario
from servesim.sweeps.point import Outcome, simulate

#: A scenario with its hash.
Job = tuple[str, Scenario]


def run_all(jobs: Sequence[Job], workers: int, until_s: float | None) -> Iterator[tuple[str, Outcome, bool]]:
    """Yield hash and outcome of each job as it ends, in any order, and whether the outcome would recur.

    Args:
        jobs: what to run.
        workers: how many processes; 1 is this one, -1 as many as there are cores.
        until_s: no job begins after this moment of :func:`time.monotonic`.

    """
    import joblib  # a tenth of a second, which a sweep that is done already need not wait for

    started = _while_time_lasts(jobs, until_s)
    workers = min(joblib.cpu_count() if workers < 0 else workers, len(jobs))
    if workers <= 1:
        yield from map(_work, started)
        return
    pool = joblib.Parallel(workers, return_as="generator_unordered", batch_size=1, pre_dispatch=2 * workers)
    yield from pool(joblib.delayed(_work)(job) for job in started)


def _work(job: Job) -> tuple[str, Outcome, bool]:
    key, scenario = job
    return key, *simulate(scenario)


def _while_time_lasts(jobs: Sequence[Job], until_s: float | None) -> Iterator[Job]:
    for job in jobs:
        if until_s is not None and monotonic() >= until_s:
            return
        yield job
