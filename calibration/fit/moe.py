"""The fits of experts: one per format, of the kernel that stands for it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pandas as pd

from calibration.fit.job import Array, Job, Start
from calibration.fit.routing import load
from calibration.fit.rows import FEWEST_ROWS, Work, columns
from servesim.cost.gpu import Gpu
from servesim.cost.kernels.floor import WEIGHT_BYTES, kernel_floor, peak_flops
from servesim.cost.kernels.moe import Moe

#: The kernel of each engine that stands for a format of experts, by the beginning of its name.
KERNELS = {
    "vllm": {
        "bf16": ("vllm_unquantizedfusedmoe_triton", "vllm_fused_moe"),
        "fp8_block": ("vllm_fp8moe_triton",),
        "fp8": ("vllm_modeloptfp8moe_flashinfer_cutlass",),
        "mxfp4": ("vllm_gptossmxfp4moe_triton",),
        "int4": ("vllm_compressedtensorswna16marlinmoe",),
    },
    "trtllm": dict.fromkeys(
        ("bf16", "fp8_block", "fp8", "mxfp4"), ("moe_torch_flow_cutlass", "moe_torch_flow")
    ),
    "sglang": {
        "bf16": ("sglang_fused_moe_triton",),
        "fp8_block": ("sglang_fused_moe_triton",),
        "mxfp4": ("sglang_fused_moe_triton",),
        "int4": ("sglang_marlin_moe",),
    },
    "torch": {"bf16": ("torch_grouped_mm",)},
}

COEFFICIENTS = {
    "launch_s": Start(3e-5, 1e-6, 1e-3),
    "expert_s": Start(1e-7, 1e-10, 1e-4),
    "bandwidth": Start(0.9, 0.05, 1),
    "rate": Start(0.5, 0.05, 2),
    "activation_bandwidth": Start(0.5, 0.05, 20),
    "overlap": Start(2, 1, 10),
}


def jobs(gpu: Gpu, table: pd.DataFrame) -> Iterator[Job]:
    """Yield one fit per format: gated experts, all of them on every GPU (no expert parallelism)."""
    table = table[table.gated & (table.ep == 1)]
    for dtype, prefixes in KERNELS[table.engine.iloc[0]].items():
        rows = table[table["dtype"].eq(dtype) & table.kernel.str.startswith(prefixes)]
        if len(rows) < FEWEST_ROWS:
            continue
        shapes = zip(rows.tokens, rows.top_k, rows.experts, rows.distribution, strict=True)
        hit, padded = np.array([load(*shape) for shape in shapes], dtype=float).T
        rows = rows.assign(inter=rows.inter // rows.tp, hit=hit, padded=padded)
        yield Job(
            operation="moe",
            name=dtype,
            rows=rows,
            shape=("tokens", "hidden", "inter", "experts", "top_k", "distribution"),
            group=_model_columns(rows),
            ranges=("tokens", "hidden", "inter", "experts", "top_k"),
            coefficients=COEFFICIENTS,
            build=partial(Moe, dtype),
            predict=lambda form, part: form.seconds(
                gpu, *columns(part, "tokens", "hidden", "inter", "top_k", "hit", "padded")
            ),
            roofline=partial(floor, gpu, dtype),
            excluded=rows.seconds.to_numpy() < floor(gpu, dtype, rows),
            subsets={
                str(name): rows.distribution.eq(name).to_numpy()
                for name in sorted(rows.distribution.unique())
            },
        )


def _model_columns(rows: pd.DataFrame) -> tuple[str, ...]:
    """Return what makes a whole shape of experts: a model, or its split where the table has but one."""
    model = ("hidden", "experts", "top_k")
    return model if len(rows[list(model)].drop_duplicates()) > 1 else (*model, "inter")


def work(dtype: str, rows: pd.DataFrame) -> Work:
    """Return the work of experts: their arithmetic, and the weights of those hit."""
    expert = (3 * rows.hidden * rows.inter).to_numpy(float)
    flops = 2 * expert * (rows.tokens * rows.top_k).to_numpy()
    return Work(flops, expert * rows.hit.to_numpy() * WEIGHT_BYTES[dtype])


def floor(gpu: Gpu, dtype: str, rows: pd.DataFrame) -> Array:
    """Return the datasheet's time of experts."""
    flops, hbm_bytes = work(dtype, rows)
    return kernel_floor(gpu, flops, peak_flops(gpu, dtype), hbm_bytes)
