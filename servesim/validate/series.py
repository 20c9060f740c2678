"""Several measured runs in a row: where the knee is, measured and simulated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from servesim.validate.compare import Comparison

#: What passes the limit at the knee.
TAIL = ("ttft", "p99")


class Knee(NamedTuple):
    """The lowest of several rates (requests/s) at which p99 TTFT is above a limit (s); None: at none of them.

    ``rates`` are those of the runs, ascending.
    """

    limit_s: float
    rates: tuple[float, ...]
    measured_rps: float | None
    simulated_rps: float | None

    @property
    def error(self) -> float | None:
        """Return simulated / measured - 1; None where one of them has no knee."""
        if self.measured_rps is None or self.simulated_rps is None:
            return None
        return self.simulated_rps / self.measured_rps - 1


def knee(comparisons: Sequence[Comparison], limit_s: float) -> Knee | None:
    """Return where the p99 TTFT of runs at several rates passes a limit; None with fewer than two rates.

    Args:
        comparisons: one for each run; those without a rate or a p99 TTFT do not count.
        limit_s: the limit in seconds.

    """
    runs = sorted(
        (rate, *each.figures[TAIL])
        for each in comparisons
        if (rate := each.measured.offered_rps) is not None and TAIL in each.figures
    )
    if len(runs) < 2:
        return None
    first = [next((run[0] for run in runs if run[side] > limit_s), None) for side in (1, 2)]
    return Knee(limit_s, tuple(run[0] for run in runs), *first)
