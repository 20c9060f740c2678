"""How many requests meet the objective."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan, nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from servesim.results.rates import per_gpu, ratio
from servesim.results.records import Records
from servesim.results.slo import Slo
from servesim.results.window import Window, left_over


class Judged(NamedTuple):
    """Numbers of requests.

    Attributes:
        asked: those that were sent in the window, or were due in it and not sent when the run was cut.
        good: those of them that completed within all limits.
        cut: those of them whose end nobody knows: in the system or held back by the client at the horizon.
        done: good ones among the requests that the throughput counts.
    """

    asked: int
    good: int
    cut: int
    done: int

    @classmethod
    def of(
        cls,
        records: Records,
        slo: Slo,
        window: Window,
        delivered: NDArray[np.bool_],
        held_due_s: Sequence[float] = (),
    ) -> Judged:
        """Return the numbers of a run, of whose requests these were delivered in the window."""
        sent, good = window.sends(records.request_table.column("sent_s")), slo.good(records)
        held = int((np.asarray(held_due_s) >= window.start_s).sum())
        return cls(
            asked=int(sent.sum()) + held,
            good=int((good & sent).sum()),
            cut=int((left_over(records) & sent).sum()) + held,
            done=int((good & delivered).sum()),
        )


def goodput(slo: Slo, judged: Judged, window: Window, gpus: int) -> dict[str, Any]:
    """Return the share of requests that were good, and good requests per second; NaN without limits.

    The share is of all that were asked for: those dropped, timed out or cut at the horizon lower it. The rate
    is of the requests that the throughput counts, so it is never above that; in a steady part, these are
    those that ended in it, whenever they were sent.
    """
    share = ratio(judged.good, judged.asked) if slo.asks else nan
    rate = ratio(judged.done, window.length_s) if slo.asks else nan
    return {
        "limits": slo.limits,
        "target": slo.attainment,
        "judged": judged.asked,
        "cut": judged.cut,
        "attainment": share,
        "met": None if isnan(share) else share >= slo.attainment,
        "requests_per_s": rate,
        **per_gpu({"requests_per_s": rate}, gpus),
    }
