"""The fits of the engine's all-reduce: one per number of GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pandas as pd

from calibration.fit.job import Array, Job, Start
from servesim.cost.gpu import Gpu
from servesim.cost.kernels.all_reduce import AllReduce

COEFFICIENTS = {
    "quick_s": Start(4e-6, 1e-7, 1e-4),
    "quick_rate": Start(0.2, 0.001, 1),
    "steady_s": Start(1e-5, 1e-7, 1e-3),
    "steady_rate": Start(0.5, 0.001, 1),
}

#: Several, because the error has several minima; the last has the second way begin beyond a megabyte.
STARTS = (
    *({"quick_rate": quick, "steady_rate": steady} for quick in (0.05, 0.2) for steady in (0.3, 0.6)),
    {"quick_s": 9e-5, "quick_rate": 0.6, "steady_s": 4e-6, "steady_rate": 0.5},
)


def jobs(gpu: Gpu, table: pd.DataFrame) -> Iterator[Job]:
    """Yield one fit per number of GPUs: graph rows of 8 KB to 140 MB."""
    rows = table[(table["mode"] == "graph") & table.bytes.between(8e3, 140e6)]
    for gpus, part in rows.groupby("gpus"):
        yield Job(
            operation="all_reduce",
            name=f"gpus_{gpus}",
            rows=part,
            shape=("gpus", "bytes"),
            group=("bytes",),
            ranges=("bytes",),
            coefficients=COEFFICIENTS,
            build=partial(_all_reduce, gpus),
            predict=lambda form, part: form.seconds(gpu, part.bytes.to_numpy()),
            roofline=lambda part, gpus=gpus: sent_bytes(gpus, part) / gpu.nvlink_bytes_per_s,
            starts=STARTS,
        )


def sent_bytes(gpus: int, rows: pd.DataFrame) -> Array:
    """Return the bytes that each GPU of a ring sends: every part of the message once reduced, once shared."""
    return rows.bytes.to_numpy(float) * (2 - 2 / gpus)


def _all_reduce(
    gpus: int, quick_s: float, quick_rate: float, steady_s: float, steady_rate: float
) -> AllReduce:
    """Return the form with the way that starts sooner as the quick one, whichever a fit has found it as."""
    (quick_s, quick_rate), (steady_s, steady_rate) = sorted([(quick_s, quick_rate), (steady_s, steady_rate)])
    return AllReduce(gpus, quick_s, quick_rate, steady_s, steady_rate)
