"""Whether a cluster keeps up with what arrives."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from servesim.engine.log import QUEUED, RUNNING
from servesim.results.records import Records
from servesim.results.window import Window

Floats = NDArray[np.float64]

#: Stretches of the run over which the number of requests in the system is averaged.
STRETCHES = 12
#: Share of the arrivals that must pile up for it to count.
PILED_UP = 0.01
#: Arrivals from which on a verdict is ventured: two in each stretch.
FEWEST = 2 * STRETCHES
#: Student's t of a slope with 10 degrees of freedom that chance exceeds once in 200 times.
T_CRITICAL = 3.17


def saturated(records: Records, steady: Window) -> bool | None:
    """Say whether requests pile up for as long as they are sent; None: no telling.

    The number of requests in the system, averaged over 12 equal stretches of the last three quarters of
    the steady window, rises: the slope of its regression line is significant (t > 3.17) and amounts to
    more than 1% of the arrivals; and the mean number of those that wait to be scheduled for the first time
    is larger in the window's last quarter than in its first. A stable system's number fluctuates about a
    mean; more than it can serve makes it grow without end, at the rate of the excess.
    """
    requests = records.request_table
    sent_s = requests.column("sent_s")
    if not steady.length_s > 0 or steady.sends(sent_s).sum() < FEWEST:
        return None
    left_over = np.isin(requests.column("status"), (RUNNING, QUEUED))
    gone_s = np.where(left_over, np.inf, sent_s + np.nan_to_num(requests.column("e2e_s")))
    return _rises(steady, sent_s, gone_s) and _queues_more(records, steady, sent_s)


def _rises(steady: Window, sent_s: Floats, gone_s: Floats) -> bool:
    """Say whether the number in the system rises over the window's last three quarters."""
    length_s = 0.75 * steady.length_s
    edges_s = np.linspace(steady.end_s - length_s, steady.end_s, STRETCHES + 1)
    stretches = [Window(start_s, end_s) for start_s, end_s in pairwise(edges_s)]
    present = np.array([stretch.overlap_s(sent_s, gone_s).sum() / stretch.length_s for stretch in stretches])
    place = np.arange(STRETCHES) - (STRETCHES - 1) / 2
    spread = (place**2).sum()
    slope = (place * present).sum() / spread
    residual = present - present.mean() - slope * place
    error = np.sqrt((residual**2).sum() / (STRETCHES - 2) / spread)
    arrivals = Window(edges_s[0], steady.end_s).sends(sent_s).sum()
    return bool(slope > T_CRITICAL * error and slope * STRETCHES > PILED_UP * arrivals)


def _queues_more(records: Records, steady: Window, sent_s: Floats) -> bool:
    """Say whether more requests wait to be scheduled in the window's last quarter than in its first."""
    requests = records.request_table
    queue_s = np.where(requests.column("status") == QUEUED, np.inf, requests.column("queue_s"))
    scheduled_s = sent_s + np.nan_to_num(queue_s, posinf=np.inf)
    first, last = (steady.quarter(n).overlap_s(sent_s, scheduled_s).sum() for n in (0, 3))
    return bool(last > first)
