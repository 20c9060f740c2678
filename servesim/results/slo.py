"""What a request must meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from servesim.check import quantity

if TYPE_CHECKING:
    from servesim.results.records import Records


@dataclass(frozen=True)
class Slo:
    """Limits on the latency of one request, and the share of requests that is to meet them all.

    A limit that is null is not asked for. As in ``vllm bench serve --goodput``, a request is good when it
    meets every limit (<=), and one of a single token has a TPOT of 0.
    """

    ttft_s: float | None = quantity("s", above=0, default=None)
    tpot_s: float | None = quantity("s", above=0, default=None)
    e2e_s: float | None = quantity("s", above=0, default=None)
    attainment: float = quantity("share of requests", above=0, at_most=1, default=0.99)

    @property
    def limits(self) -> dict[str, float | None]:
        """The limits, by the name of what they limit."""
        return {"ttft_s": self.ttft_s, "tpot_s": self.tpot_s, "e2e_s": self.e2e_s}

    @property
    def asks(self) -> bool:
        """Whether there is any limit."""
        return any(limit is not None for limit in self.limits.values())

    def good(self, records: Records) -> NDArray[np.bool_]:
        """Say of each request whether it completed within all limits."""
        good: NDArray[np.bool_] = ~np.isnan(records.request_table.column("e2e_s"))
        for name, limit in self.limits.items():
            if limit is not None:
                good &= np.nan_to_num(records.request_table.column(name)) <= limit
        return good
