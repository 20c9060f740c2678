"""What each class of requests got."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from servesim.results.outcomes import Outcomes
from servesim.results.records import Records
from servesim.results.slo import Slo


def classes(records: Records, slo: Slo, sent: NDArray[np.bool_]) -> dict[str, Any] | None:
    """Return the outcome of each class of the requests sent, by priority, the best first; None: there is one.

    Latencies are of the completed ones.
    """
    priority = records.request_table.column("priority")
    known = np.unique(priority[sent])
    if len(known) < 2:
        return None
    outcomes = Outcomes(records, slo)
    return {str(int(each)): outcomes.of(sent & (priority == each)) for each in known.tolist()}
