"""How long requests took, and where their time went."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from servesim.results.columns import PARTS
from servesim.results.records import Records
from servesim.results.runs import Source
from servesim.results.statistics import describe, describe_runs


def latency(records: Records, kept: NDArray[np.bool_], gaps: Source) -> dict[str, Any]:
    """Return the statistics of the kept requests (completed ones) and of the gaps between tokens.

    As ``vllm bench serve`` has them: TPOT of requests with more than one token, ITL over all gaps pooled.
    Gaps are kept per step, not per request, so ITL includes the gaps of requests that a horizon cut off or
    a client gave up. Interactivity is 1 / TPOT: tokens per second that one user sees. What requests wait in
    the client, behind ``max_concurrency`` or in failed attempts before them, is part of neither TTFT nor E2E;
    with it, E2E is what a user sees, from when the request was due.
    """
    names = ("ttft_s", "tpot_s", "e2e_s", "client_queue_s")
    ttft_s, tpot_s, e2e_s, client_queue_s = (records.request_table.column(name)[kept] for name in names)
    tpot_s = tpot_s[~np.isnan(tpot_s)]
    e2e = describe(e2e_s)
    return {
        "ttft_s": describe(ttft_s),
        "tpot_s": describe(tpot_s),
        "itl_s": describe_runs(gaps),
        "e2e_s": e2e,
        "client_queue_s": describe(client_queue_s),
        "user_e2e_s": describe(client_queue_s + e2e_s) if client_queue_s.any() else e2e,
        "interactivity": describe(1 / tpot_s[tpot_s > 0]),
    }


def breakdown(records: Records, kept: NDArray[np.bool_]) -> dict[str, float]:
    """Return the mean seconds that the kept requests spent in each part; they sum to the mean E2E."""
    if not kept.any():
        return dict.fromkeys(PARTS, np.nan)
    return {part: float(records.request_table.column(f"{part}_s")[kept].mean()) for part in PARTS}
