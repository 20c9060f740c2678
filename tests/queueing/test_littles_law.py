"""Little's law and the utilisation law, each side measured on its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from servesim.engine.clock import BOUNDARY, Alarm
from servesim.engine.continuous import Continuous
from servesim.workload.arrivals import ClosedLoop, Poisson
from servesim.workload.lengths import Geometric
from servesim.workload.synthetic import Synthetic
from tests.costs import constant_step
from tests.intervals import mean_interval
from tests.queueing.replications import (
    CONFIDENCE,
    REPLICATIONS,
    STEP_S,
    WARM_UP,
    assert_recovers,
    replicate,
)
from tests.serving import Run, Service

ONE_AT_A_TIME = Service(Continuous(max_num_seqs=1), constant_step(STEP_S))
RATE_RPS = 0.5
EVERY_S = 1.7
REQUESTS = 3200


def watched(seed: int) -> tuple[Run, float, float]:
    """Serve an M/M/1; return the run, and the mean numbers in the system and in the queue.

    Both are counted by an onlooker every 1.7 s, from the warm-up to the last sending.
    """
    workload = Synthetic(Poisson(RATE_RPS), Geometric(1, 1000), requests=REQUESTS)
    run = Run(replace(ONE_AT_A_TIME, seed=seed), workload)
    counts: list[tuple[int, int]] = []

    def count() -> None:
        counts.append((run.cluster.unfinished, len(run.engines[0].waiting)))

    onlooker = Alarm(count)
    for number in range(int(REQUESTS / RATE_RPS / EVERY_S)):
        run.clock.set(onlooker, EVERY_S * number, BOUNDARY)
    run.finish()
    sent_s = run.column("sent_s")
    begin, end = (int(moment_s / EVERY_S) + 1 for moment_s in (sent_s[WARM_UP], sent_s[-1]))
    in_system, in_queue = np.array(counts)[begin:end].mean(axis=0)
    return run, float(in_system), float(in_queue)


def test_l_is_lambda_w() -> None:
    """What an onlooker counts is the rate times what requests report: L = lambda W, Lq = lambda Wq.

    In M/M/1 at rho = 0.5 one request is in the system in the mean, and half a one in the queue. Replication
    by replication the two sides differ by chance only: zero is in the 99% interval of their difference.
    """
    runs = [watched(seed) for seed in range(REPLICATIONS)]
    assert_recovers([in_system for _, in_system, _ in runs], 1.0, mistake=0.515 / 0.485)
    system, queue = [], []
    for run, in_system, in_queue in runs:
        sent_s, waited_s = run.column("sent_s")[WARM_UP:], run.column("queue_s")[WARM_UP:]
        rate_rps = (len(sent_s) - 1) / (sent_s[-1] - sent_s[0])
        spent_s = run.column("finished_s")[WARM_UP:] - sent_s
        system.append(in_system - rate_rps * float(spent_s.mean()))
        queue.append(in_queue - rate_rps * float(waited_s.mean()))
    for differences in (system, queue):
        interval = mean_interval(differences, CONFIDENCE)
        assert 0.0 in interval
        assert interval.high - interval.low < 0.05


def test_a_server_is_busy_for_rho_of_the_time() -> None:
    """U = lambda E[S] = 0.5: the share of the time that steps take, from the first sending to the last."""

    def busy(run: Run) -> float:
        return sum(leap["steps"] * leap["first_step_s"] for leap in run.leaps) / run.column("sent_s")[-1]

    shares = replicate(ONE_AT_A_TIME, Poisson(RATE_RPS), Geometric(1, 1000), busy, 1200)
    assert_recovers(shares, 0.5, mistake=0.515)


def test_a_closed_loop_keeps_the_server_busy() -> None:
    """Four users without a pause, one server of 1 s: one request per second, and Little's 4 = 1/s x 4 s.

    Each request waits for the three before it and takes 1 s itself: E2E is 4 s in the mean.
    """

    def mean_e2e_s(run: Run) -> float:
        return float((run.column("finished_s") - run.column("sent_s"))[WARM_UP:].mean())

    users = ClosedLoop(concurrency=4)
    taken_s = replicate(ONE_AT_A_TIME, users, Geometric(1, 1000), mean_e2e_s, 1200)
    assert_recovers(taken_s, 4.0, mistake=4.12)
