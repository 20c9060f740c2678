"""What became of every request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from servesim.cluster.conversations import Ends
from servesim.engine.log import COMPLETED, DROPPED, QUEUED, REASONS, RUNNING, TIMED_OUT
from servesim.engine.swap_space import Swaps
from servesim.results.rates import ratio
from servesim.results.records import Records
from servesim.results.sessions import percentile_of_stays
from servesim.results.steady_state import FILLED


@dataclass(frozen=True)
class Facts:
    """What only the driver of a run knows of it.

    Attributes:
        warmup: requests that ran before the run, and are counted nowhere else.
        injected: requests sent to the cluster; one that was still on its way at the horizon is running.
        retries_pending: failed attempts whose retry was still to come at the horizon: it is not injected.
        held_due_s: when the requests were due, by the horizon, that ``max_concurrency`` still held back
            then: they are not injected.
        not_sent: requests that were asked for, and whose time had not come by the horizon: they are not
            injected. Where answers lead to requests, none unless somebody said how many.
        length_capped: outputs cut at ``max_model_len``.
        zero_output_rows: rows of a trace with 0 output tokens, run as 1.
        open_loop: whether arrivals wait for nobody.
        batched: whether whole batches are served one after the other.
        horizon_s: when the run was to be cut, if at all.
        events: scheduling events of the simulator.
        cpu_started_s: ``time.process_time()`` when the run began.
        evicted_blocks: KV blocks that a prompt could have found and that were lost to make room.
        swaps: what was swapped; None where the preempted are recomputed.
        tiers: what was copied to and from each kind of KV tier; None where there are none.
        sessions: how conversations ended; None where there are none.

    """

    warmup: int
    injected: int
    retries_pending: int
    held_due_s: tuple[float, ...]
    not_sent: int
    length_capped: int
    zero_output_rows: int
    open_loop: bool
    batched: bool
    horizon_s: float | None
    events: int
    cpu_started_s: float
    evicted_blocks: int = 0
    swaps: Swaps | None = None
    tiers: Mapping[str, Mapping[str, float]] | None = None
    sessions: Ends | None = None

    @property
    def stay_s(self) -> float:
        """Seconds in which 95% of the conversations are through; 0 where there are none."""
        return percentile_of_stays(self.sessions, FILLED) if self.sessions else 0.0

    @property
    def last_begun_s(self) -> float:
        """When the last conversation began, where their number ends that; otherwise infinite."""
        return self.sessions.last_begun_s if self.sessions else inf

    @property
    def client_queued(self) -> int:
        """How many requests the client still held back."""
        return len(self.held_due_s)


def accounting(records: Records, facts: Facts) -> dict[str, Any]:
    """Return how many requests came to which end: injected = completed + dropped + timed out + left over.

    Each attempt to have a request served is injected, and comes to an end of its own. A failed one (dropped
    or timed out) is followed by a retry, now or after the horizon, or it was the last: then the request is
    given up. ``success`` is the share of the requests that completed, whatever number of attempts it took.

    Raises:
        RuntimeError: a request is missing or counted twice, a fault of the simulator.

    """
    requests = records.request_table
    status = requests.column("status").astype(np.int64)
    ends = np.bincount(status, minlength=QUEUED + 1).tolist()
    if sum(ends) != facts.injected:
        raise RuntimeError(f"{facts.injected} requests were injected, but {sum(ends)} are accounted for")
    retries = int((requests.column("attempt") > 0).sum())
    failed = ends[DROPPED] + ends[TIMED_OUT]
    reasons = np.bincount(requests.column("reason")[status == DROPPED], minlength=len(REASONS)).tolist()
    return {
        "warmup": facts.warmup,
        "injected": facts.injected,
        "completed": ends[COMPLETED],
        "dropped": {reason: count for reason, count in zip(REASONS, reasons, strict=True) if count},
        "timed_out": ends[TIMED_OUT],
        "running": ends[RUNNING],
        "queued": ends[QUEUED],
        "retries": retries,
        "retries_pending": facts.retries_pending,
        "given_up": failed - retries - facts.retries_pending,
        "success": ratio(ends[COMPLETED], facts.injected - retries),
        "client_queued": facts.client_queued,
        "not_sent": facts.not_sent,
        "length_capped": facts.length_capped,
        "zero_output_rows": facts.zero_output_rows,
        "preemptions": int(requests.column("preemptions").sum()),
        "clean": ends[COMPLETED] == facts.injected and not facts.client_queued,
    }
