"""What became of a group of requests, and how long those of it that completed took."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from servesim.engine.log import DROPPED, TIMED_OUT
from servesim.results.rates import ratio
from servesim.results.records import Records
from servesim.results.slo import Slo
from servesim.results.statistics import describe

_TOLD = ("mean", "p50", "p99")


class Outcomes:
    """The ends of a run's requests, of which groups are told with what they have in common.

    Latencies are of the completed requests, as everywhere in a summary, so that the mean of a run is the mean
    of its groups, each weighed by ``completed``. The attainment is the share of all that met every limit; NaN
    without limits.
    """

    def __init__(self, records: Records, slo: Slo) -> None:
        table = records.request_table
        self._status = table.column("status")
        self._good = slo.good(records) if slo.asks else None
        self._times_s = {name: table.column(name) for name in ("ttft_s", "e2e_s")}
        self._done = ~np.isnan(self._times_s["e2e_s"])

    def of(self, chosen: NDArray[np.bool_]) -> dict[str, Any]:
        """Return how many of the chosen requests, or attempts, came to which end, and their latencies."""
        requests, done = int(chosen.sum()), chosen & self._done
        said = {name: describe(times_s[done]) for name, times_s in self._times_s.items()}
        good = np.nan if self._good is None else int((self._good & chosen).sum())
        return {
            "requests": requests,
            "completed": int(done.sum()),
            "dropped": int((self._status[chosen] == DROPPED).sum()),
            "timed_out": int((self._status[chosen] == TIMED_OUT).sum()),
            "attainment": ratio(good, requests),
            **{name: {key: each[key] for key in _TOLD} for name, each in said.items()},
        }
