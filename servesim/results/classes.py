"""What each class of requests got."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from servesim.results.rates import ratio
from servesim.results.records import Records
from servesim.results.slo import Slo
from servesim.results.statistics import describe


def classes(records: Records, slo: Slo, sent: NDArray[np.bool_]) -> dict[str, Any] | None:
    """Return the figures of each class of the requests sent, by priority, the best first; None: there is one.

    TTFT and E2E are of the completed ones; the attainment is the share of all that met every limit.
    """
    table = records.request_table
    priority = table.column("priority")
    known = np.unique(priority[sent])
    if len(known) < 2:
        return None
    e2e_s, good, found = table.column("e2e_s"), slo.good(records), {}
    for each in known.tolist():
        chosen = sent & (priority == each)
        done = chosen & ~np.isnan(e2e_s)
        found[str(int(each))] = {
            "requests": int(chosen.sum()),
            "completed": int(done.sum()),
            "ttft_s": _told(table.column("ttft_s")[done]),
            "e2e_s": _told(e2e_s[done]),
            "attainment": ratio(int((good & chosen).sum()), int(chosen.sum())) if slo.asks else None,
        }
    return found


def _told(sample: NDArray[np.float64]) -> dict[str, float]:
    said = describe(sample)
    return {name: said[name] for name in ("mean", "p50", "p99")}
