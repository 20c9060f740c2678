"""Running points: in this process, or on several at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from time import monotonic

from servesim.scenario import Scenario
from servesim.sweeps.interruption import left_to_this_process
from servesim.sweeps.point import Outcome, simulate

#: A scenario with its hash.
Job = tuple[str, Scenario]
#: Its hash, what became of it, and whether that would become of it again.
Done = tuple[str, Outcome, bool]


def run_all(jobs: Sequence[Job], workers: int, until_s: float | None) -> Iterator[Done]:
    """Yield hash and outcome of each job as it ends, in any order, and whether the outcome would recur.

    The first job is run however little time there is.

    Args:
        jobs: what to run.
        workers: how many processes; 1 is this one, -1 as many as there are cores.
        until_s: no other job begins after this moment of :func:`time.monotonic`.

    """
    import joblib  # a tenth of a second, which a sweep that is done already need not wait for

    workers = min(joblib.cpu_count() if workers < 0 else workers, len(jobs))
    if workers <= 1:
        yield from map(_work, _while_time_lasts(jobs, until_s))
        return
    pool = joblib.Parallel(workers, return_as="generator_unordered", batch_size=1, pre_dispatch=2 * workers)
    missing = dict(jobs)
    try:
        with left_to_this_process():
            found = pool(joblib.delayed(_work)(job) for job in _while_time_lasts(jobs, until_s))
        for done in found:
            del missing[done[0]]
            yield done
    except BrokenProcessPool:
        yield from map(_alone, _while_time_lasts(list(missing.items()), until_s))


def _alone(job: Job) -> Done:
    """Run a job alone in another process, so that it is known which one ends its process."""
    import joblib

    try:
        with left_to_this_process():
            found = joblib.Parallel(2, return_as="generator")([joblib.delayed(_work)(job)])
        done: Done = next(found)
    except BrokenProcessPool:
        return job[0], Outcome.failed("its process was killed: there may be too little memory for it"), False
    return done


def _work(job: Job) -> Done:
    key, scenario = job
    return key, *simulate(scenario)


def _while_time_lasts(jobs: Sequence[Job], until_s: float | None) -> Iterator[Job]:
    for number, job in enumerate(jobs):
        if number and until_s is not None and monotonic() >= until_s:
            return
        yield job
