"""Whether a cluster keeps up with what arrives."""

from __future__ import annotations

from itertools import pairwise
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from servesim.engine.log import QUEUED, RUNNING, TIMED_OUT
from servesim.results.records import Records
from servesim.results.steady_state import FILLED
from servesim.results.window import Window

Floats = NDArray[np.float64]

#: Stretches of the run over which the number of requests is averaged.
STRETCHES = 12
#: Share of the arrivals that must pile up for it to count.
PILED_UP = 0.01
#: Standard deviations of the number of arrivals by which a stable system may fill by chance.
NOISE = 1.0
#: Standard deviations of the number of arrivals by which the queue must have grown since the first of them.
BEYOND_CHANCE = 2.0
#: Coefficient of variation of the gaps between arrivals that is assumed at least: service varies, too.
LEAST_VARIATION = 0.5
#: Arrivals from which on a verdict is ventured: two in each stretch.
FEWEST = 2 * STRETCHES
#: Student's t of a slope with 10 degrees of freedom that chance exceeds once in 200 times.
T_CRITICAL = 3.17


def saturated(records: Records, steady: Window, batched: bool = False, stay_s: float = 0.0) -> bool | None:
    """Say whether requests pile up for as long as they are sent; None: no telling.

    A stable system's number of requests fluctuates about a mean; more than it can serve makes it grow without
    end, at the rate of the excess. Growth is seen in either of two ways.

    Over all of the sending or over its second half, the number of requests that wait to be scheduled for the
    first time rises significantly (t > 3.17, over 12 equal stretches) and by more than two standard
    deviations of the number of arrivals, cv sqrt(n) of a renewal process: even at exactly the capacity,
    chance rarely queues so many.

    Or, over the last three quarters of the steady window, the number in the system rises significantly and by
    more than 1% of the arrivals (of few: one standard deviation), and more wait in the window's
    last quarter than in its first. That takes a window which begins after the ramp, when 95% of requests
    would have been through: until then the number in the system rises under any load, and completions that
    come in waves may hide an excess. So a run too short for it is never found stable.

    What the client holds back, with ``max_concurrency``, piles up there. So a request counts from when it is
    due, whether it waits in the client or in a queue; the steady window is that of the same requests. Each
    attempt of a client that tries again counts for itself, from its sending until it is answered or given up.

    Args:
        records: the closed records of the run.
        steady: the steady window.
        batched: whether whole batches are served one after the other. All that comes during one waits for the
            next, so that a queue is only a sign of too much where it takes longer than a batch.
        stay_s: until when 95% of conversations would have been through, since they send until they end.

    """
    requests = records.request_table
    sent_s = requests.column("sent_s")
    held_s = np.where(requests.column("attempt") > 0, 0.0, requests.column("client_queue_s"))
    judged, due_s = steady.sends(sent_s), sent_s - held_s
    if not steady.length_s > 0 or judged.sum() < FEWEST:
        return None
    if held_s.any():
        steady = Window(float(due_s[judged].min()), float(due_s.max()))
    status, lasted_s = requests.column("status"), requests.column("ended_s") - sent_s
    queue_s = np.where(status == QUEUED, np.inf, requests.column("queue_s"))
    queue_s = np.where(np.isnan(queue_s) & (status == TIMED_OUT), lasted_s, queue_s)
    wait_s = np.nan_to_num(queue_s, posinf=np.inf) + held_s
    if _queue_grows(due_s, wait_s) and not (batched and _waits_a_batch(records, wait_s)):
        return True
    left_over = np.isin(status, (RUNNING, QUEUED))
    e2e_s = np.where(left_over, np.inf, np.nan_to_num(lasted_s) + held_s)
    filled_s = due_s.min() + max(np.percentile(e2e_s, FILLED, method="lower"), stay_s)
    if not filled_s <= steady.start_s < steady.end_s:
        return None
    return _rises(steady, due_s, e2e_s) and _queues_more(steady, due_s, wait_s)


def _queue_grows(sent_s: Floats, wait_s: Floats) -> bool:
    """Say whether more and more requests wait for as long as they are sent, beyond chance."""
    gaps_s = np.diff(np.sort(sent_s))
    variation = max(LEAST_VARIATION, float(gaps_s.std() / gaps_s.mean()))
    chance = variation * sqrt(len(sent_s))
    first_s, last_s = float(sent_s.min()), float(sent_s.max())
    parts = Window(first_s, last_s), Window((first_s + last_s) / 2, last_s)
    return any(_growth(part, sent_s, sent_s + wait_s) > BEYOND_CHANCE * chance for part in parts)


def _waits_a_batch(records: Records, wait_s: Floats) -> bool:
    """Say whether the last requests wait no longer than others are served, once scheduled."""
    requests = records.request_table
    last = np.argsort(requests.column("sent_s"), kind="stable")[-len(wait_s) // STRETCHES :]
    served_s = requests.column("e2e_s") - requests.column("queue_s")
    return bool(np.isnan(served_s).all() or wait_s[last].mean() <= np.nanmean(served_s))


def _rises(steady: Window, sent_s: Floats, e2e_s: Floats) -> bool:
    """Say whether the number in the system rises over the window's last three quarters."""
    part = Window(steady.end_s - 0.75 * steady.length_s, steady.end_s)
    arrivals = int(part.sends(sent_s).sum())
    return _growth(part, sent_s, sent_s + e2e_s) > max(PILED_UP * arrivals, NOISE * sqrt(arrivals))


def _growth(window: Window, starts_s: Floats, ends_s: Floats) -> float:
    """Return by how much the number of open intervals grows over a window; 0 where that may be chance.

    It is the slope of the regression line through the means of 12 equal stretches.
    """
    edges_s = np.linspace(window.start_s, window.end_s, STRETCHES + 1)
    stretches = [Window(start_s, end_s) for start_s, end_s in pairwise(edges_s)]
    present = np.array(
        [stretch.overlap_s(starts_s, ends_s).sum() / stretch.length_s for stretch in stretches]
    )
    place = np.arange(STRETCHES) - (STRETCHES - 1) / 2
    spread = (place**2).sum()
    slope = (place * present).sum() / spread
    residual = present - present.mean() - slope * place
    error = np.sqrt((residual**2).sum() / (STRETCHES - 2) / spread)
    return float(slope * STRETCHES) if slope > T_CRITICAL * error else 0.0


def _queues_more(steady: Window, sent_s: Floats, wait_s: Floats) -> bool:
    """Say whether more requests wait to be scheduled in the window's last quarter than in its first."""
    first, last = (steady.quarter(n).overlap_s(sent_s, sent_s + wait_s).sum() for n in (0, 3))
    return bool(last > first)
