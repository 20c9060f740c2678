"""How long cases take, and how much memory, before any is timed: by the shipped profile of the H100."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import ceil
from typing import Any

import yaml

from calibration.conf import CONF, gpu_named
from calibration.fit.routing import load
from calibration.independent import ELEMENT_BYTES
from calibration.measure.case import Case
from servesim.cost.gpu import Gpu
from servesim.cost.kernels.all_reduce import AllReduce
from servesim.cost.kernels.decode_attention import DecodeAttention
from servesim.cost.kernels.elementwise import Elementwise
from servesim.cost.kernels.floor import KV_BYTES, WEIGHT_BYTES
from servesim.cost.kernels.gemm import Gemm
from servesim.cost.kernels.moe import Moe
from servesim.cost.kernels.prefill_attention import PrefillAttention

GPU, PROFILE = "h100-sxm", "h100-sxm-vllm"

#: Host time of a launch, generously.
LAUNCH_S = 1e-5

BF16_BYTES = 2


def seconds(case: Case) -> float:
    """Return the predicted time of one call on an H100."""
    return float(_SECONDS[case.operation](h100(), case))


def rotated_bytes(case: Case) -> int:
    """Return the bytes of weights, KV or sources that one call reads: it shall find them in HBM."""
    if case.operation == "gemm":
        return int(case["n"] * case["k"] * WEIGHT_BYTES[case["dtype"]])
    if case.operation in ("decode_attention", "prefill_attention"):
        tokens = case["batch"] * (case["length"] + case.shape.get("prefix", 0))
        return int(2 * tokens * case["kv_heads"] * case["head_dim"] * KV_BYTES[case["kv_dtype"]])
    if case.operation == "moe":
        inter = case["inter"] // case["tp"]
        return int(3 * case["hidden"] * inter * case["experts"] * WEIGHT_BYTES[case["dtype"]])
    return int(case["bytes"]) if case.operation == "copy" else 0


def fixed_bytes(case: Case) -> int:
    """Return the bytes of activations, results included, that every call shares."""
    if case.operation == "gemm":
        return BF16_BYTES * case["m"] * (case["n"] + case["k"])
    if case.operation in ("decode_attention", "prefill_attention"):
        tokens = case["batch"] * (case["length"] if case.operation == "prefill_attention" else 1)
        return 2 * BF16_BYTES * tokens * case["heads"] * case["head_dim"]
    if case.operation == "moe":
        inter = case["inter"] // case["tp"]
        return BF16_BYTES * case["tokens"] * case["top_k"] * (2 * case["hidden"] + 3 * inter)
    if case.operation == "quantise":
        return 3 * case["m"] * case["k"]
    if case.operation in ELEMENT_BYTES:
        return ELEMENT_BYTES[case.operation] * case["tokens"] * case["width"]
    return int(2 * case.shape.get("bytes", 0))


def copies(rotated: int, cache_bytes: int, most: int) -> int:
    """Return how many buffers calls go through: together twice the L2 cache, where ``most`` allow it."""
    return min(max(ceil(2 * cache_bytes / rotated), 1), most) if rotated else 1


@cache
def h100() -> Gpu:
    """Return the GPU of the prediction."""
    return gpu_named(GPU)


@cache
def _form(form: type, operation: str, name: str) -> Any:
    said = yaml.safe_load((CONF / "calibration" / f"{PROFILE}.yaml").read_text())
    return form(**said[operation][name])


def _gemm(gpu: Gpu, case: Case) -> Any:
    return _form(Gemm, "gemm", case["dtype"]).seconds(gpu, case["m"], case["n"], case["k"])


def _decode(gpu: Gpu, case: Case) -> Any:
    shape = (case[name] for name in ("batch", "heads", "kv_heads", "head_dim", "length"))
    return _form(DecodeAttention, case.operation, case["kv_dtype"]).seconds(gpu, *shape)


def _prefill(gpu: Gpu, case: Case) -> Any:
    shape = (case[name] for name in ("batch", "heads", "kv_heads", "head_dim", "length"))
    return _form(PrefillAttention, case.operation, case["dtype"]).seconds(gpu, *shape, prefix=case["prefix"])


def _moe(gpu: Gpu, case: Case) -> Any:
    tokens, hidden, top_k = case["tokens"], case["hidden"], case["top_k"]
    hit, padded = load(tokens, top_k, case["experts"], case["distribution"])
    inter = case["inter"] // case["tp"]
    return _form(Moe, "moe", case["dtype"]).seconds(gpu, tokens, hidden, inter, top_k, hit, padded)


def _elementwise(gpu: Gpu, case: Case) -> Any:
    form = _form(Elementwise, "quantise", "static")
    if case.operation == "quantise":
        return form.seconds(gpu, case["m"], case["k"])
    return form.seconds(gpu, case["tokens"], case["width"], ELEMENT_BYTES[case.operation])


def _collective(gpu: Gpu, case: Case) -> Any:
    launch = LAUNCH_S if case["mode"] == "eager" else 0.0
    return launch + _form(AllReduce, "all_reduce", f"gpus_{case['gpus']}").seconds(gpu, case["bytes"])


def _copy(gpu: Gpu, case: Case) -> float:
    rate = gpu.hbm_bytes_per_s / 2 if case["direction"] == "device" else gpu.pcie_bytes_per_s
    return float(LAUNCH_S + case["bytes"] / rate)


def _launch(gpu: Gpu, case: Case) -> float:
    return float(LAUNCH_S * case["kernels"])


_SECONDS: dict[str, Callable[[Gpu, Case], Any]] = {
    "gemm": _gemm,
    "decode_attention": _decode,
    "prefill_attention": _prefill,
    "moe": _moe,
    "norm": _elementwise,
    "rope": _elementwise,
    "activation": _elementwise,
    "quantise": _elementwise,
    "all_reduce": _collective,
    "all_to_all": _collective,
    "copy": _copy,
    "launch": _launch,
}
