"""The tidy tables: one per operation, one row per timing, SI units throughout."""

from __future__ import annotations

import pandas as pd

#: Columns of every table: the GPU as its file in ``conf/gpu`` is named, who ran the kernel and in which
#: version, the file the row was read from, and the time of one call in seconds.
COMMON = ("gpu", "engine", "engine_version", "source", "seconds")

#: Columns that say what was computed. Sizes are counts, ``bytes`` are bytes; ``length`` is the KV length of
#: every sequence (decode) or the new tokens of every sequence (prefill), ``prefix`` its cached tokens,
#: ``window`` the attention window in tokens (0: none), ``heads`` and ``kv_heads`` those of one GPU. An
#: all-to-all sends ``bytes`` from every GPU, its own share included. A ``copy`` goes within the ``device``,
#: ``host_to_device``, ``device_to_host``, or within the ``host``. A ``launch`` is what the host spends on
#: that many small ``kernels``, launched one by one (``eager``) or replayed as one ``graph``.
SHAPES = {
    "gemm": ("dtype", "m", "n", "k"),
    "decode_attention": ("kv_dtype", "batch", "heads", "kv_heads", "head_dim", "window", "length"),
    "prefill_attention": (
        "dtype",
        "kv_dtype",
        "batch",
        "heads",
        "kv_heads",
        "head_dim",
        "window",
        "length",
        "prefix",
    ),
    "all_reduce": ("gpus", "bytes", "mode"),
    "moe": (
        "dtype",
        "kernel",
        "tokens",
        "hidden",
        "inter",
        "experts",
        "top_k",
        "tp",
        "ep",
        "distribution",
        "gated",
    ),
    "quantise": ("dtype", "mode", "m", "k"),
    "norm": ("dtype", "tokens", "width"),
    "rope": ("dtype", "tokens", "width"),
    "activation": ("dtype", "tokens", "width"),
    "all_to_all": ("gpus", "bytes", "mode"),
    "copy": ("direction", "bytes"),
    "launch": ("mode", "kernels"),
}

_WORDS = {"dtype", "kv_dtype", "mode", "kernel", "distribution", "direction"}


class SourceError(RuntimeError):
    """A source of timings is missing, or is not what its reader expects."""


def tidy(rows: pd.DataFrame, operation: str) -> pd.DataFrame:
    """Return the tidy table of an operation: its columns in order, its rows sorted by shape.

    Where a shape was timed more than once its median stays, so that no shape counts twice in a fit and
    none can stand on both sides of a split.

    Raises:
        SourceError: where a column is missing, or a time is not positive and finite.
    """
    shape = SHAPES[operation]
    columns = [*COMMON[:-1], *shape]
    missing = [name for name in (*columns, "seconds") if name not in rows]
    if missing:
        raise SourceError(f"{operation}: the columns {', '.join(missing)} are missing")
    if not rows.seconds.gt(0).all() or rows.seconds.isin([float("inf")]).any():
        raise SourceError(f"{operation}: every time must be positive and finite")
    sizes = {name: "int64" for name in shape if name not in _WORDS | {"gated"}}
    table = rows[[*columns, "seconds"]].astype(sizes)
    return table.groupby(columns, sort=True, as_index=False, observed=True).seconds.median()
