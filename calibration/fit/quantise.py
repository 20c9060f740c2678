"""The fits of the quantisation of activations to FP8: static, and dynamic."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from calibration.fit.job import Array, Job, Start
from calibration.fit.rows import CORE, FEWEST_ROWS, columns
from servesim.cost.gpu import Gpu
from servesim.cost.kernels.elementwise import Elementwise

COEFFICIENTS = {
    "launch_s": Start(2e-6, 1e-7, 1e-4),
    "row_s": Start(0.5e-6, 1e-9, 1e-5),
    "cache_bytes": Start(16e6, 1e5, 1e9),
    "cache_bandwidth": Start(2, 0.1, 50),
    "bandwidth": Start(0.8, 0.05, 1),
}


def jobs(gpu: Gpu, table: pd.DataFrame) -> Iterator[Job]:
    """Yield fits of static quantisation to FP8, and of dynamic: static plus finding the scale."""
    core = table[table.k >= CORE]
    static = core[core["mode"] == "static"]
    both = core.groupby(["m", "k", "engine"], as_index=False).agg(
        seconds=("seconds", "sum"), parts=("mode", "size")
    )
    for name, rows in (("static", static), ("dynamic", both[both.parts == 2])):
        if len(rows) < FEWEST_ROWS:
            continue
        yield Job(
            operation="quantise",
            name=name,
            rows=rows,
            shape=("m", "k"),
            group=("k",),
            ranges=("m", "k"),
            coefficients=COEFFICIENTS,
            build=Elementwise,
            predict=lambda form, part: form.seconds(gpu, *columns(part, "m", "k")),
            roofline=lambda part: moved_bytes(part) / gpu.hbm_bytes_per_s,
        )


def moved_bytes(rows: pd.DataFrame) -> Array:
    """Return the bytes of activations that are read in BF16 and written in FP8."""
    m, k = columns(rows, "m", "k")
    return 3 * m * k
