"""Errors by load: how many requests were under way when a request was sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from servesim.validate.measured import Integers, Measured

if TYPE_CHECKING:
    import pandas as pd


def in_flight(run: Measured) -> Integers:
    """Return how many requests were under way just after each was sent, itself included.

    Requests whose end is not known do not count, nor does one that ends at that very moment.
    """
    known = ~np.isnan(run.e2e_s)
    starts = np.sort(run.sent_s[known])
    ends = np.sort((run.sent_s + run.e2e_s)[known])
    begun = np.searchsorted(starts, run.sent_s, side="right")
    over = np.searchsorted(ends, run.sent_s, side="right")
    under_way: Integers = np.maximum(begun - over, 1).astype(np.int64)
    return under_way


def by_load(measured: Measured, simulated: Measured) -> pd.DataFrame:
    """Return one row for each band of load, the bands doubling: 1, 2-3, 4-7, 8-15 ...

    The load is that of the measured run, and both columns are of the same requests: those that completed in
    both. Columns: ``from``, ``to`` (requests under way), ``n``, and of TTFT and TPOT the means in seconds,
    measured and simulated, and the relative error of the mean.
    """
    import pandas as pd

    band = np.frexp(in_flight(measured).astype(float))[1] - 1
    rows = []
    known = ~np.isnan(measured.e2e_s) & ~np.isnan(simulated.e2e_s)
    for power in np.unique(band[known]):
        chosen = known & (band == power)
        row: dict[str, float] = {"from": 2**power, "to": 2 ** (power + 1) - 1, "n": int(chosen.sum())}
        for metric in ("ttft", "tpot"):
            pair = np.array([run.column(metric)[chosen] for run in (measured, simulated)])
            both = pair[:, ~np.isnan(pair).any(axis=0)]
            means = both.mean(axis=1) if both.size else np.full(2, np.nan)
            row |= {f"{metric}_measured": means[0], f"{metric}_simulated": means[1]}
            row[f"{metric}_error"] = means[1] / means[0] - 1 if means[0] > 0 else np.nan
        rows.append(row)
    names = [f"{m}_{what}" for m in ("ttft", "tpot") for what in ("measured", "simulated", "error")]
    return pd.DataFrame(rows, columns=["from", "to", "n", *names])
