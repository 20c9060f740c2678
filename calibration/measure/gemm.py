"""Dense products: cuBLAS by way of torch."""

from __future__ import annotations

from functools import partial

import torch
from torch.nn.functional import linear

from calibration.measure.bench import Bench, Prepared
from calibration.measure.case import Case


def prepare(case: Case, bench: Bench) -> Prepared:
    """Return products [m, k] x [n, k]^T of BF16, or of FP8 with one scale per tensor and a BF16 result."""
    m, n, k, dtype = case["m"], case["n"], case["k"], case["dtype"]
    if dtype == "fp8":
        bench.need_capability((8, 9), "FP8 products")
    inputs = bench.random(m, k, dtype=dtype)
    weights = [bench.random(n, k, dtype=dtype) for _ in range(bench.copies(case))]
    if dtype == "bf16":
        return Prepared(tuple(partial(linear, inputs, each) for each in weights), "torch_linear")
    scale = torch.ones((), device=bench.device)
    product = partial(torch._scaled_mm, scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16)
    return Prepared(tuple(partial(product, inputs, each.t()) for each in weights), "torch_scaled_mm")
