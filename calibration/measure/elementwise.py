"""Norms, rotary embedding, activation and quantisation: kernels that pass over activations once or twice."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import torch
from torch.nn.functional import rms_norm, silu

from calibration.measure.bench import Bench, Prepared
from calibration.measure.case import Case

EPSILON = 1e-5
FP8_MOST = 448.0  # the largest number of float8_e4m3fn
ROPE_BASE = 1e4
HEAD_DIM = 128

#: One KV head beside so many query heads in the rotary embedding; its time depends on their sum only.
QUERY_HEADS_PER_KV_HEAD = 8


def prepare_norm(case: Case, bench: Bench) -> Prepared:
    """Return the RMS norm of a sum with the residual, [tokens, width], as a layer has it."""
    tokens, width = case["tokens"], case["width"]
    values, residual, weight = bench.random(tokens, width), bench.random(tokens, width), bench.random(width)
    if "flashinfer" in bench.libraries:
        norm = bench.libraries["flashinfer"].norm.fused_add_rmsnorm
        return Prepared(
            bench.same(partial(norm, values, residual, weight, EPSILON)), "flashinfer_fused_add_rmsnorm"
        )
    return _torch(bench, add_norm, values, residual, weight)


def prepare_rope(case: Case, bench: Bench) -> Prepared:
    """Return the rotary embedding of query and key together, [tokens, width]."""
    tokens, heads = case["tokens"], case["width"] // HEAD_DIM
    positions = torch.arange(tokens, dtype=torch.int32, device=bench.device)
    if "flashinfer" in bench.libraries:
        keys = max(heads // (QUERY_HEADS_PER_KV_HEAD + 1), 1)
        query, key = bench.random(tokens, heads - keys, HEAD_DIM), bench.random(tokens, keys, HEAD_DIM)
        embed = bench.libraries["flashinfer"].rope.apply_rope_pos_ids_inplace
        return Prepared(
            bench.same(partial(embed, query, key, positions)), "flashinfer_apply_rope_pos_ids_inplace"
        )
    rates = ROPE_BASE ** (-torch.arange(HEAD_DIM // 2, device=bench.device) / (HEAD_DIM // 2))
    angles = positions[:, None] * rates
    return _torch(bench, rotate, bench.random(tokens, heads, HEAD_DIM), angles.cos(), angles.sin())


def prepare_activation(case: Case, bench: Bench) -> Prepared:
    """Return SiLU(gate) x up from [tokens, 2 x width] to [tokens, width]."""
    both = bench.random(case["tokens"], 2 * case["width"])
    if "flashinfer" in bench.libraries:
        multiply = bench.libraries["flashinfer"].activation.silu_and_mul
        return Prepared(bench.same(partial(multiply, both)), "flashinfer_silu_and_mul")
    return _torch(bench, gated, both)


def prepare_quantise(case: Case, bench: Bench) -> Prepared:
    """Return the scaling of [m, k] to FP8 by a given number, or the search for that number."""
    values = bench.random(case["m"], case["k"])
    if case["mode"] == "compute_scale":
        return _torch(bench, scale_of, values)
    return _torch(bench, scaled, values, torch.ones((), device=bench.device))


def _torch(bench: Bench, function: Any, *inputs: torch.Tensor) -> Prepared:
    run, kernel = _compiled(bench, function)
    return Prepared(bench.same(partial(run, *inputs)), kernel)


@cache
def _compiled(bench: Bench, function: Any) -> tuple[Any, str]:
    return bench.compiled(function)


def add_norm(
    values: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the norm of the sum, and the sum, which is the next residual."""
    total = values + residual
    return rms_norm(total, (total.shape[-1],), weight, EPSILON), total


def rotate(heads: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    """Return heads [tokens, heads, HEAD_DIM] with their halves rotated by angles [tokens, HEAD_DIM / 2]."""
    first, second = heads.chunk(2, dim=-1)
    cosine, sine = cosine[:, None], sine[:, None]
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), -1).to(heads.dtype)


def gated(both: torch.Tensor) -> torch.Tensor:
    """Return SiLU of the first half of each row times the second half."""
    gate, up = both.chunk(2, dim=-1)
    return silu(gate) * up


def scale_of(values: torch.Tensor) -> torch.Tensor:
    """Return the scale at which the largest value just fits FP8."""
    return values.abs().amax().float() / FP8_MOST


def scaled(values: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Return values in FP8 by a scale."""
    return (values.float() / scale).clamp(-FP8_MOST, FP8_MOST).to(torch.float8_e4m3fn)
