"""How many requests meet the objective."""

from __future__ import annotations

from math import isnan, nan
from typing import Any

from servesim.results.rates import per_gpu, ratio
from servesim.results.slo import Slo
from servesim.results.window import Window


def goodput(slo: Slo, good: int, injected: int, cut: int, window: Window, gpus: int) -> dict[str, Any]:
    """Return the share of the injected requests that were good, and their rate; NaN without limits.

    Requests that were dropped, timed out or left over were injected, so they lower the attainment; ``cut``
    are those left over at the horizon, of which nobody knows whether they would have been
    good. ``judged`` says how many were injected.
    """
    share = ratio(good, injected) if slo.asks else nan
    rate = ratio(good, window.length_s) if slo.asks else nan
    return {
        "limits": slo.limits,
        "target": slo.attainment,
        "judged": injected,
        "cut": cut,
        "attainment": share,
        "met": None if isnan(share) else share >= slo.attainment,
        "requests_per_s": rate,
        **per_gpu({"requests_per_s": rate}, gpus),
    }
