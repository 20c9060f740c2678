"""Sweeps judged anew: other limits, another target, another price, without another run.

A price is exact: the table has the GPU hours of every point. Of latencies it has percentiles, not every
request, so that the share of requests within other limits is known within bounds: a value between two
percentiles stands for a count of requests between their ranks. Of several limits, at least as many requests
meet all as if no request missed two of them (Boole's inequality), and at most as many as meet the
strictest. Of a run whose requests are at hand, the share is exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, inf
from typing import Any

import numpy as np
import pandas as pd

from servesim.check import listed
from servesim.results.statistics import PERCENTILES
from servesim.screen.figures import dollars, percent

ATTAINMENT, GOOD, PER_GPU, MET = (
    f"goodput.{name}" for name in ("attainment", "requests_per_s", "requests_per_s_per_gpu", "met")
)
#: What the bounds of a figure are called, in columns beside it.
LEAST, MOST = ".least", ".most"

#: Figures that follow from how many requests were good.
BOUNDED = (ATTAINMENT, GOOD, PER_GPU)

_COSTS = (
    "usd",
    "usd_per_million_output_tokens",
    "usd_per_million_total_tokens",
    "usd_per_request",
    "usd_per_good_request",
)

Row = Mapping[Any, Any]


@dataclass(frozen=True)
class Judge:
    """Limits in seconds, by name (None: none), the share of requests to meet them, and a price.

    Without a price, each point keeps the one it was run with.
    """

    limits: Mapping[str, float | None]
    target: float
    usd_per_gpu_hour: float | None = None

    def told(self) -> str:
        """Return in words what it judges by."""
        asked = [
            f"{name.removesuffix('_s').upper()} <= {limit:g} s"
            for name, limit in self.limits.items()
            if limit is not None
        ]
        price = (
            "each at its own price"
            if self.usd_per_gpu_hour is None
            else f"at {dollars(self.usd_per_gpu_hour)} per GPU-hour"
        )
        share = f"{listed(asked, 'and')} for {percent(self.target)}" if asked else "no limits"
        return f"{share}, {price}"


def judged(table: pd.DataFrame, judge: Judge, requests: Sequence[pd.DataFrame] = ()) -> pd.DataFrame:
    """Return the table of a sweep as this judge sees it.

    The goodput columns of ``BOUNDED`` are the middles between their bounds, which are columns beside them;
    ``goodput.met`` is null where the bounds lie on both sides of the target. A limit that the judge does not
    name stays as each point has it.

    Args:
        table: one row per point, as ``sweep.parquet`` has it.
        judge: what to judge by.
        requests: the requests that the figures of each row speak of, where they are at hand.

    """
    rows = table.to_dict("records")
    known = [*requests, *[None] * (len(rows) - len(requests))]
    changes = [_changes(row, judge, own) for row, own in zip(rows, known, strict=True)]
    names = dict.fromkeys(name for change in changes for name in change)
    columns = {
        name: pd.Series(
            [change.get(name, row.get(name)) for change, row in zip(changes, rows, strict=True)], table.index
        )
        for name in names
    }
    return table.assign(**columns)


def _changes(row: Row, judge: Judge, requests: pd.DataFrame | None) -> dict[str, object]:
    """Return what of a point is different to this judge."""
    changes = _price(row, judge.usd_per_gpu_hour) | _verdict(row, judge, requests)
    if ATTAINMENT in changes:
        usd = _number(changes.get("cost.usd", row.get("cost.usd")))
        good = _number(changes[GOOD]) * _number(row.get("window_s"))
        certain = changes[f"{GOOD}{LEAST}"] == changes[f"{GOOD}{MOST}"]
        changes["cost.usd_per_good_request"] = _ratio(usd, good) if certain else np.nan
    return changes


def _price(row: Row, usd_per_gpu_hour: float | None) -> dict[str, object]:
    """Return the costs of a point at another price: in proportion to that of the whole."""
    usd = _number(row.get("cost.usd"))
    if usd_per_gpu_hour is None or np.isnan(usd):
        return {}
    hours = _number(row["cost.gpu_hours"])
    costs = {f"cost.{name}": _number(row.get(f"cost.{name}")) for name in _COSTS}
    return {name: usd_per_gpu_hour * hours * _ratio(cost, usd) for name, cost in costs.items()}


def _verdict(row: Row, judge: Judge, requests: pd.DataFrame | None) -> dict[str, object]:
    """Return the goodput of a point, between its bounds; nothing of a point without figures."""
    sent, window_s = _sent(row), _number(row.get("window_s"))
    if np.isnan(sent):
        return {}
    limits = _limits(row) | {name: inf if limit is None else limit for name, limit in judge.limits.items()}
    asks = any(limit < inf for limit in limits.values())
    counts = np.array(_counts(row, limits, requests) if asks else (np.nan, np.nan))
    gpus = _number(row.get("cost.gpu_hours")) * 3600 / window_s
    said: dict[str, object] = {
        f"goodput.limits.{name}": limit if limit < inf else np.nan for name, limit in limits.items()
    }
    for name, per in ((ATTAINMENT, sent), (GOOD, window_s), (PER_GPU, window_s * gpus)):
        least, most = counts / per
        said |= {name: (least + most) / 2, f"{name}{LEAST}": least, f"{name}{MOST}": most}
    least, most = counts / sent
    return said | {
        "goodput.target": judge.target,
        MET: True if least >= judge.target else False if most < judge.target else None,
    }


def _sent(row: Row) -> float:
    """Return how many requests the attainment of a point is a share of; NaN where it cannot be told."""
    attainment = _number(row.get(ATTAINMENT))
    if attainment > 0:
        return round(_number(row.get(GOOD)) * _number(row.get("window_s")) / attainment)
    return _number(row.get("latency.ttft_s.n")) if row["status"] == "clean" else np.nan


def _counts(row: Row, limits: Mapping[str, float], requests: pd.DataFrame | None) -> tuple[float, float]:
    """Return how many requests of a point meet all limits, at least and at most."""
    if requests is not None:
        good = requests["e2e_s"].notna()
        for name, limit in limits.items():
            good &= requests[name].fillna(0.0) <= limit
        return float(good.sum()), float(good.sum())
    stored, known = _limits(row), _number(row.get(ATTAINMENT)) * _sent(row)
    completed = _number(row.get("latency.ttft_s.n"))
    bounds = [within(row, name, limit, completed) for name, limit in limits.items() if limit < inf]
    least = max(0.0, completed - sum(completed - low for low, _ in bounds))
    most = min(high for _, high in bounds)
    if all(limits[name] >= stored.get(name, inf) for name in limits):
        least = float(np.fmax(least, known))
    if all(limits[name] <= stored.get(name, inf) for name in limits):
        most = float(np.fmin(most, known))
    return least, most


def _limits(row: Row) -> dict[str, float]:
    """Return the limits that a point was run with; those that it had not are infinite."""
    start = "goodput.limits."
    found = {name[len(start) :]: _number(value) for name, value in row.items() if name.startswith(start)}
    return {name: inf if np.isnan(limit) else limit for name, limit in found.items()}


def within(row: Row, name: str, limit: float, completed: float) -> tuple[float, float]:
    """Return of how many completed requests a latency is within a limit, at least and at most.

    The p-th percentile of n values lies between those of ranks floor(h) and ceil(h), h = (n - 1) p / 100.
    A request that has no such latency (TPOT of a single token) is within every limit.
    """
    count = _number(row.get(f"latency.{name}.n"))
    low, high = 0.0, count
    for at, word in ((0, "min"), *((each, f"p{each}") for each in PERCENTILES), (100, "max")):
        value, rank = _number(row.get(f"latency.{name}.{word}")), (count - 1) * at / 100
        if value <= limit:
            low = max(low, floor(rank) + 1.0)
        elif value > limit:
            high = min(high, float(ceil(rank)))
    without = completed - count
    return low + without, high + without


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else np.nan


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float, np.number)) else np.nan
