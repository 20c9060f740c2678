"""Where a run has warmed up."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from servesim.engine.log import TIMED_OUT
from servesim.results.records import Records
from servesim.results.window import NOTHING, Window

Floats = NDArray[np.float64]

#: Observations per batch.
BATCH = 5
#: Per cent of requests whose E2E has to pass before a cluster counts as filled.
FILLED = 95
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


class Steady(NamedTuple):
    """The steady part of a run, and whether there is one: not where half the run would have to go."""

    window: Window
    found: bool


def steady_part(records: Records, stay_s: float = 0.0, last_begun_s: float = inf) -> Steady:
    """Return the steady part of a run: from its warm-up's end to the last send, or the last session's begin.

    The warm-up ends with the later of two MSER-5 cuts, on TTFT and on E2E of the completed requests in
    order of sending; those whose clients hung up count with the time until then, as otherwise the first few
    that did not would speak for a cluster under which everything times out. But a cluster that is not
    pressed has the same latencies from its first request on, while tokens come at their full rate only when
    as many requests are under way as ever will be; so the warm-up also lasts until 95% of requests would
    have been through; and for ``stay_s``, in which 95% of conversations would have been, since they send
    until they end. At most half the run is cut.

    After ``last_begun_s`` no conversation takes the place of one that ends, and the cluster drains for as
    long as the longest goes on: such a run is steady up to then at most, and later requests count for nothing
    here. Where all begin at one time there is no such part, and it ends with the last send.
    """
    requests = records.request_table
    sent_s = requests.column("sent_s")
    if not len(sent_s):
        return Steady(NOTHING, False)
    begin_s, end_s = float(sent_s.min()), float(sent_s.max())
    if begin_s < last_begun_s < end_s:
        end_s = last_begun_s
    hung_up = requests.column("status") == TIMED_OUT
    e2e_s = np.where(hung_up, requests.column("ended_s") - sent_s, requests.column("e2e_s"))
    ttft_s = requests.column("ttft_s")
    ttft_s = np.where(hung_up & np.isnan(ttft_s), e2e_s, ttft_s)
    ended = np.flatnonzero(~np.isnan(e2e_s) & (sent_s <= end_s))
    if not len(ended):
        return Steady(Window(begin_s, end_s), False)
    order = ended[np.argsort(requests.column("request_id")[ended], kind="stable")]
    settled = max(mser5(e2e_s[order]), mser5(ttft_s[order]))
    full_s = sent_s[order[0]] + max(np.percentile(e2e_s[order], FILLED), stay_s)
    cut = max(settled, int(np.searchsorted(sent_s[order], full_s)))
    half = len(order) // 2
    start_s = float(sent_s[order[min(cut, half)]])
    return Steady(Window(start_s, end_s), settled + BATCH <= half and cut <= half)
