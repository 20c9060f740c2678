"""Where a run has warmed up, and whether it can keep up at all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from servesim.engine.log import QUEUED
from servesim.results.records import Records
from servesim.results.window import NOTHING, Window

Floats = NDArray[np.float64]

#: Observations per batch.
BATCH = 5
#: Share of a sample's sum of squares below which a spread is rounding.
ROUNDING = 1e-12


def mser5(sample: Floats) -> int:
    """Return how many of the first observations to leave out, by the MSER-5 rule: at most half of them.

    The sample becomes the means Y of batches of 5; of d = 0, 1, ..., half the batches it takes the d that
    minimises sum_{i>d} (Y_i - mean of Y_{d+1..n})^2 / (n - d)^2, the squared width of the confidence
    interval of what is left (White, Cobb and Spratt, "A comparison of five steady-state truncation
    heuristics for simulation", Winter Simulation Conference 2000).
    """
    batches = len(sample) // BATCH
    if batches < 2:
        return 0
    means = sample[: batches * BATCH].reshape(batches, BATCH).mean(axis=1)
    centred = means - means.mean()
    left = np.arange(batches, 0, -1)
    sums, squares = (np.cumsum(x[::-1])[::-1] for x in (centred, centred**2))
    spread = squares - sums**2 / left
    spread[spread <= ROUNDING * (means**2).sum()] = 0.0
    score = (spread / left.astype(np.float64) ** 2)[: batches // 2 + 1]
    return int(np.argmin(score)) * BATCH


def steady_window(records: Records) -> Window:
    """Return the steady part of a run: from the MSER-5 cut to the last send.

    The rule looks at TTFT and at E2E of the completed requests in order of sending; the later cut counts.
    """
    requests = records.request_table
    sent_s, e2e_s = requests.column("sent_s"), requests.column("e2e_s")
    if not len(sent_s):
        return NOTHING
    completed = np.flatnonzero(~np.isnan(e2e_s))
    if not len(completed):
        return Window(float(sent_s.min()), float(sent_s.max()))
    order = completed[np.argsort(requests.column("request_id")[completed], kind="stable")]
    cut = max(mser5(e2e_s[order]), mser5(requests.column("ttft_s")[order]))
    return Window(float(sent_s[order[cut]]), float(sent_s.max()))


def saturated(records: Records, steady: Window) -> bool | None:
    """Say whether more arrives in the steady window than leaves it, and the queue grows; None: no telling.

    More: arrivals minus completions exceed 5% of arrivals. Grows: the mean number of requests that wait to
    be scheduled for the first time is larger in the window's last quarter than in its first.
    """
    if not steady.length_s > 0:
        return None
    requests = records.request_table
    sent_s = requests.column("sent_s")
    arrivals = int(steady.sends(sent_s).sum())
    completions = int(steady.sees(sent_s + requests.column("e2e_s")).sum())
    if arrivals - completions <= 0.05 * arrivals:
        return False
    queue_s = np.where(requests.column("status") == QUEUED, np.inf, requests.column("queue_s"))
    scheduled_s = sent_s + np.nan_to_num(queue_s, posinf=np.inf)
    first, last = (steady.quarter(n).overlap_s(sent_s, scheduled_s).sum() for n in (0, 3))
    return bool(last > first)
