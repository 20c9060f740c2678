"""The rows of tidy tables that a fit takes, and their columns as numbers."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

from calibration.fit.job import Array

#: Fewer rows than this are no fit.
FEWEST_ROWS = 60

#: Products with fewer columns or a shorter depth are no layer of a language model.
CORE = 512

#: The columns that say how attention is shaped.
HEADS = ("batch", "heads", "kv_heads", "head_dim", "length")
ATTENTION_SHAPE = (*HEADS, "window")


class Work(NamedTuple):
    """What a kernel cannot avoid: its FLOPs, and the bytes of weights or KV that it reads from HBM."""

    flops: Array
    hbm_bytes: Array


def columns(rows: pd.DataFrame, *names: str) -> list[Array]:
    """Return columns as floating-point numbers."""
    return [rows[name].to_numpy(dtype=float) for name in names]
