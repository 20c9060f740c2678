"""The fits of decode attention: one per KV format."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pandas as pd

from calibration.conf import MULTIPROCESSORS
from calibration.fit.job import Array, Job, Start
from calibration.fit.rows import ATTENTION_SHAPE, FEWEST_ROWS, HEADS, Work, columns
from servesim.cost.gpu import Gpu
from servesim.cost.kernels.decode_attention import DecodeAttention
from servesim.cost.kernels.floor import KV_BYTES, kernel_floor

COEFFICIENTS = {
    "launch_s": Start(1e-5, 1e-7, 1e-4),
    "split_s": Start(1e-6, 1e-9, 1e-5),
    "wave_s": Start(3.7e-6, 1e-8, 1e-4),
    "bandwidth": Start(0.92, 0.1, 1),
    "stream_bandwidth": Start(0.8, 1e-3, 5),
    "overlap": Start(1.4, 1, 10),
    "cache_bytes": Start(44e6, 1e6, 1e9),
    "cache_bandwidth": Start(3, 1, 20),
}


def jobs(gpu: Gpu, table: pd.DataFrame) -> Iterator[Job]:
    """Yield one fit per KV format: heads of 128, no window.

    TensorRT-LLM chooses among kernel families by the ratio of query heads to KV heads; only ratios of 4 to
    16, those of grouped-query models, are fitted there.
    """
    plain = table[(table.head_dim == 128) & (table.window == 0)]
    if table.engine.iloc[0] == "trtllm":
        plain = plain[(plain.heads / plain.kv_heads).between(4, 16)]
    for kv_dtype, rows in plain.groupby("kv_dtype"):
        if len(rows) < FEWEST_ROWS:
            continue
        kv_bytes = 2 * rows.batch * rows.kv_heads * rows.length * 128 * KV_BYTES[str(kv_dtype)]
        yield Job(
            operation="decode_attention",
            name=str(kv_dtype),
            rows=rows,
            shape=ATTENTION_SHAPE,
            group=("heads", "kv_heads"),
            ranges=("batch", "kv_heads", "length"),
            coefficients=COEFFICIENTS,
            build=partial(DecodeAttention, str(kv_dtype), MULTIPROCESSORS[gpu.name]),
            predict=partial(seconds, gpu),
            roofline=lambda part, kv_dtype=str(kv_dtype): floor(gpu, kv_dtype, part),
            subsets={
                "heads_per_kv_head_4_to_16": (rows.heads / rows.kv_heads).between(4, 16).to_numpy(),
                "kv_from_100_mb": kv_bytes.ge(1e8).to_numpy(),
            },
        )


def seconds(gpu: Gpu, form: DecodeAttention, rows: pd.DataFrame) -> Array:
    """Return a form's times of table rows, whose KV stays in the cache where it fits."""
    return form.seconds(gpu, *columns(rows, *HEADS), window=rows.window.to_numpy(), resident=True)


def work(kv_dtype: str, rows: pd.DataFrame) -> Work:
    """Return the work of decode attention: its arithmetic, and KV once."""
    batch, heads, kv_heads, head_dim, length = columns(rows, *HEADS)
    kv_bytes = 2 * batch * kv_heads * length * head_dim * KV_BYTES[kv_dtype]
    return Work(4 * batch * heads * length * head_dim, kv_bytes)


def floor(gpu: Gpu, kv_dtype: str, rows: pd.DataFrame) -> Array:
    """Return the datasheet's time of decode attention."""
    flops, kv_bytes = work(kv_dtype, rows)
    return kernel_floor(gpu, flops, gpu.bf16_flops_per_s, kv_bytes)
