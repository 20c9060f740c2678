"""Kernel timings in the format of Vidur's profiler (microsoft/vidur, MIT) as tidy tables: medians in ms."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from calibration.sources.tidy import tidy

MS = 1e-3


def all_reduce(path: Path, gpu: str) -> pd.DataFrame:
    """Read a file of collectives; ``size`` is in bytes. NCCL, launched eagerly."""
    rows = pd.read_csv(path).query("collective == 'all_reduce'")
    times = rows["time_stats.all_reduce.median"] * MS
    rows = rows.assign(gpus=rows.num_workers, bytes=rows["size"], mode="eager")
    return tidy(_common(rows, path, gpu, times), "all_reduce")


def mlp(path: Path, gpu: str, head_dim: int = 128) -> dict[str, pd.DataFrame]:
    """Read a file of layer times by tokens and tensor parallel size; the rows state the model's sizes.

    Query, key and value are one product, gate and up another. Times of a few microseconds have two digits
    at best (they are rounded to whole microseconds).
    """
    rows = pd.read_csv(path).assign(dtype="bf16")
    tp, hidden = rows.num_tensor_parallel_workers, rows.n_embd
    query, key = rows.n_head * head_dim // tp, (rows.n_kv_head // tp).clip(lower=1) * head_dim
    inner = rows.n_expanded_embd // tp
    gate_up = inner * rows.use_gated_mlp.map({True: 2, False: 1})
    products = {
        "attn_pre_proj": (query + 2 * key, hidden),
        "attn_post_proj": (hidden, query),
        "mlp_up_proj": (gate_up, hidden),
        "mlp_down_proj": (hidden, inner),
    }
    gemm = [
        _common(rows.assign(m=rows.num_tokens, n=n, k=k), path, gpu, rows[f"time_stats.{name}.median"] * MS)
        for name, (n, k) in products.items()
    ]

    def elementwise(operation: str, name: str, width: pd.Series[int]) -> pd.DataFrame:
        sized = rows.assign(tokens=rows.num_tokens, width=width)
        return tidy(_common(sized, path, gpu, rows[f"time_stats.{name}.median"] * MS), operation)

    return {
        "gemm": tidy(pd.concat(gemm), "gemm"),
        "norm": elementwise("norm", "input_layernorm", hidden),
        "rope": elementwise("rope", "attn_rope", query + key),
        "activation": elementwise("activation", "mlp_act", inner),
    }


def _common(rows: pd.DataFrame, path: Path, gpu: str, seconds: pd.Series[float]) -> pd.DataFrame:
    return rows.assign(gpu=gpu, engine="vidur", engine_version="", source=path.name, seconds=seconds)
