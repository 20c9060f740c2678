"""The fits of prefill attention: one per pair of formats, of the arithmetic and of the KV cache."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pandas as pd

from calibration.conf import MULTIPROCESSORS
from calibration.fit.job import Array, Job, Start
from calibration.fit.rows import ATTENTION_SHAPE, FEWEST_ROWS, HEADS, Work, columns
from servesim.cost.gpu import Gpu
from servesim.cost.kernels.floor import KV_BYTES, kernel_floor, peak_flops
from servesim.cost.kernels.prefill_attention import PrefillAttention

COEFFICIENTS = {
    "launch_s": Start(1e-5, 1e-7, 1e-4),
    "block_rate": Start(0.7, 0.1, 1.2),
    "tile_s": Start(2e-6, 1e-9, 1e-4),
    "chain_s": Start(1.4e-6, 1e-9, 1e-5),
    "bandwidth": Start(0.6, 0.05, 20),
    "kv_bandwidth": Start(0.6, 0.05, 20),
    "overlap": Start(2.4, 1, 10),
    "token_s": Start(1e-9, 1e-13, 1e-6),
    "short_tile": Start(0.7, 0.05, 1),
}

#: Which queries share a tile: whichever explains the rows best.
PACKING = tuple({"packing": each} for each in ("always", "single", "never"))


def jobs(gpu: Gpu, table: pd.DataFrame) -> Iterator[Job]:
    """Yield one fit per pair of formats (of the arithmetic, of the KV cache): heads of 128, no window."""
    plain = table[(table.head_dim == 128) & (table.window == 0)]
    for (dtype, kv_dtype), rows in plain.groupby(["dtype", "kv_dtype"]):
        if len(rows) < FEWEST_ROWS:
            continue
        yield Job(
            operation="prefill_attention",
            name=str(dtype) if dtype == kv_dtype else f"{dtype}_kv_{kv_dtype}",
            rows=rows,
            shape=(*ATTENTION_SHAPE, "prefix"),
            group=("heads", "kv_heads"),
            ranges=("batch", "heads", "length"),
            coefficients=COEFFICIENTS,
            choices=PACKING,
            build=partial(
                PrefillAttention,
                dtype=str(dtype),
                kv_dtype=str(kv_dtype),
                multiprocessors=MULTIPROCESSORS[gpu.name],
            ),
            predict=partial(seconds, gpu),
            roofline=lambda part, dtype=str(dtype): floor(gpu, dtype, part),
            subsets={
                "heads_per_kv_head_4_to_16": (rows.heads / rows.kv_heads).between(4, 16).to_numpy(),
                "length_from_512": rows.length.ge(512).to_numpy(),
            },
        )


def seconds(gpu: Gpu, form: PrefillAttention, rows: pd.DataFrame) -> Array:
    """Return a form's times of table rows."""
    return form.seconds(
        gpu, *columns(rows, *HEADS), prefix=rows.prefix.to_numpy(), window=rows.window.to_numpy()
    )


def work(rows: pd.DataFrame) -> Work:
    """Return the work of causal attention: its arithmetic, and KV once."""
    batch, heads, kv_heads, head_dim, length = columns(rows, *HEADS)
    prefix = rows.prefix.to_numpy()
    pairs = length * (length / 2 + prefix)
    kv_bytes = 2 * batch * kv_heads * (length + prefix) * head_dim * rows.kv_dtype.map(KV_BYTES).to_numpy()
    return Work(4 * batch * heads * pairs * head_dim, kv_bytes)


def floor(gpu: Gpu, dtype: str, rows: pd.DataFrame) -> Array:
    """Return the datasheet's time of causal attention."""
    flops, kv_bytes = work(rows)
    return kernel_floor(gpu, flops, peak_flops(gpu, dtype), kv_bytes)
