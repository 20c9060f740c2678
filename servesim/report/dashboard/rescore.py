"""Sweeps judged anew: other limits, another target, another price, without another run.

A price is exact: the table has the GPU hours of every point. Of latencies it has percentiles, not every
request, so that the share of requests within other limits is known within bounds: a value between two
percentiles stands for a count of requests between their ranks. Of several limits, at least as many requests
meet all as if no request missed two of them (Boole's inequality), and at most as many as meet the
strictest. The rate of good requests is that share of the rate at which requests are done; in a steady part,
those that end in it are taken to be like those sent in it. Of a run whose requests are at hand, both are
exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, inf
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from servesim.results.statistics import PERCENTILES
from servesim.screen.figures import dollars, percent
from servesim.words import listed

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
Floats = NDArray[np.float64]


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
        requests: all requests of the run of each row, where they are at hand.

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
    asked, window_s = _number(row.get("goodput.judged")), _number(row.get("window_s"))
    if not asked > 0:
        return {}
    limits = _limits(row) | {name: inf if limit is None else limit for name, limit in judge.limits.items()}
    if not any(limit < inf for limit in limits.values()):
        shares = rates = np.array((np.nan, np.nan))
    elif requests is None:
        shares, rates = _between(row, limits)
    else:
        sent, done = _good(row, limits, requests)
        shares, rates = np.full(2, sent / asked), np.full(2, _ratio(done, window_s))
    gpus = _number(row.get("cost.gpu_hours")) * 3600 / window_s
    said: dict[str, object] = {
        f"goodput.limits.{name}": limit if limit < inf else np.nan for name, limit in limits.items()
    }
    for name, (least, most) in ((ATTAINMENT, shares), (GOOD, rates), (PER_GPU, rates / gpus)):
        said |= {name: (least + most) / 2, f"{name}{LEAST}": least, f"{name}{MOST}": most}
    least, most = shares
    return said | {
        "goodput.target": judge.target,
        MET: True if least >= judge.target else False if most < judge.target else None,
    }


def _good(row: Row, limits: Mapping[str, float], requests: pd.DataFrame) -> tuple[int, int]:
    """Return how many requests sent in the window meet all limits, and how many that were done in it."""
    good = requests["e2e_s"].notna()
    for name, limit in limits.items():
        good &= requests[name].fillna(0.0) <= limit
    start_s = _number(row.get("warmup_cut_s"))
    if np.isnan(start_s):
        return int(good.sum()), int(good.sum())
    end_s, done_s = start_s + _number(row["window_s"]), requests["sent_s"] + requests["e2e_s"]
    done = (done_s > start_s) & (done_s <= end_s)
    return int((good & requests["sent_s"].between(start_s, end_s)).sum()), int((good & done).sum())


def _between(row: Row, limits: Mapping[str, float]) -> tuple[Floats, Floats]:
    """Return the share of requests that meet all limits, and their rate: each at least and at most."""
    completed, asked = _number(row.get("latency.ttft_s.n")), _number(row["goodput.judged"])
    bounds = [within(row, name, limit, completed) for name, limit in limits.items() if limit < inf]
    counts = max(0.0, completed - sum(completed - low for low, _ in bounds)), min(high for _, high in bounds)
    each = np.array(counts) / completed if completed else np.zeros(2)
    stored, known = _limits(row), (_number(row.get(ATTAINMENT)), _number(row.get(GOOD)))
    looser = all(limits[name] >= stored.get(name, inf) for name in limits)
    tighter = all(limits[name] <= stored.get(name, inf) for name in limits)
    return (
        _clipped(each * completed / asked, known[0], looser, tighter),
        _clipped(each * _number(row.get("throughput.requests_per_s")), known[1], looser, tighter),
    )


def _clipped(bounds: Floats, known: float, looser: bool, tighter: bool) -> Floats:
    """Return bounds that know the figure under other limits, which are all tighter or all looser."""
    return np.clip(bounds, known if looser else -inf, known if tighter else inf) if known == known else bounds


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
