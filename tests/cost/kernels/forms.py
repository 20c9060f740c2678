"""Forms with coefficients as they come out of fits, and the laws that every form obeys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import mul
from typing import Any

from hypothesis import strategies as st

from servesim.cost.gpu import Gpu
from servesim.cost.kernels.all_reduce import AllReduce
from servesim.cost.kernels.decode_attention import DecodeAttention
from servesim.cost.kernels.elementwise import Elementwise
from servesim.cost.kernels.floor import KV_BYTES, WEIGHT_BYTES, kernel_floor, peak_flops
from servesim.cost.kernels.gemm import Gemm
from servesim.cost.kernels.moe import Moe
from servesim.cost.kernels.prefill_attention import PrefillAttention
from tests.cost.shipped import gpu

H100 = gpu("h100-sxm")


@dataclass(frozen=True)
class Case:
    """A form, the sizes that it takes with the largest calibrated value of each, and its datasheet time."""

    form: Any
    sizes: dict[str, int]
    floor: Callable[[Gpu, dict[str, float]], float]
    steps: dict[str, int]

    def seconds(self, gpu: Gpu = H100, **sizes: Any) -> Any:
        """Return the form's time; of attention, ``queries_per_kv_head`` say how many heads there are."""
        if "queries_per_kv_head" in sizes:
            sizes["heads"] = sizes.pop("queries_per_kv_head") * sizes["kv_heads"]
        return self.form.seconds(gpu, **sizes)

    def any_sizes(self, factor: float = 1) -> st.SearchStrategy[dict[str, int]]:
        """Draw sizes up to ``factor`` times the largest calibrated ones."""
        return st.fixed_dictionaries(
            {
                name: st.integers(1, int(largest * factor / step)).map(partial(mul, step))
                for name, largest in self.sizes.items()
                for step in [self.steps.get(name, 1)]
            }
        )


def gemm(dtype: str, **changes: Any) -> Case:
    """Return a dense product; m in multiples of 4, as engines pad it."""
    common = {
        "multiprocessors": 132,
        "launch_s": 2.7e-6,
        "bandwidth": 0.85,
        "input_bandwidth": 0.5,
        "output_bandwidth": 1.3,
        "tile_rate": 0.84,
        "half_tile": 0.49,
        "skinny_tile": 0.47,
        "wave_quantisation": 0.5,
        "overlap": 2.6,
    }
    form = Gemm(dtype, **common | changes)  # type: ignore[arg-type]

    def floor(gpu: Gpu, s: dict[str, float]) -> float:
        weights = s["n"] * s["k"] * WEIGHT_BYTES[dtype]
        return float(kernel_floor(gpu, 2 * s["m"] * s["n"] * s["k"], peak_flops(gpu, dtype), weights))

    return Case(form, {"m": 32768, "n": 65536, "k": 65536}, floor, {"m": 4})


def decode(kv_dtype: str) -> Case:
    """Return decode attention from HBM."""
    form = DecodeAttention(kv_dtype, 132, 1.1e-5, 1e-6, 3.7e-6, 0.92, 0.8, 1.4, 43e6, 2.9)  # type: ignore[arg-type]

    def floor(gpu: Gpu, s: dict[str, float]) -> float:
        tokens = s["batch"] * s["length"] * s["head_dim"]
        kv_bytes = 2 * tokens * s["kv_heads"] * KV_BYTES[kv_dtype]
        return float(kernel_floor(gpu, 4 * tokens * s["heads"], gpu.bf16_flops_per_s, kv_bytes))

    sizes = {"batch": 2048, "heads": 64, "kv_heads": 8, "head_dim": 128, "length": 131072}
    return Case(form, sizes, floor, {})


def prefill(dtype: str, kv_dtype: str, packing: str) -> Case:
    """Return causal attention behind a cached prefix, of so many query heads to a KV head."""
    times = (1.2e-5, 0.69, 2.8e-6, 1.1e-6, 0.57, 0.5, 2.5, 1e-9, 0.6)
    form = PrefillAttention(dtype, kv_dtype, 132, *times, packing)  # type: ignore[arg-type]

    def floor(gpu: Gpu, s: dict[str, float]) -> float:
        pairs = s["length"] * (s["length"] / 2 + s["prefix"])
        flops = 4 * s["batch"] * s["queries_per_kv_head"] * s["kv_heads"] * s["head_dim"] * pairs
        tokens = s["batch"] * (s["length"] + s["prefix"])
        kv_bytes = 2 * tokens * s["kv_heads"] * s["head_dim"] * KV_BYTES[kv_dtype]
        return float(kernel_floor(gpu, flops, peak_flops(gpu, dtype), kv_bytes))

    heads = {"queries_per_kv_head": 16, "kv_heads": 64, "head_dim": 128}
    return Case(form, {"batch": 256, **heads, "length": 16384, "prefix": 16384}, floor, {})


def all_reduce() -> Case:
    """Return an all-reduce among eight GPUs."""
    form = AllReduce(8, 4.8e-6, 0.084, 9.9e-6, 0.46)
    return Case(
        form, {"message_bytes": 134_217_728}, lambda gpu, s: s["message_bytes"] / gpu.nvlink_bytes_per_s, {}
    )


def moe(dtype: str) -> Case:
    """Return gated experts."""
    form = Moe(dtype, 3e-5, 1.5e-7, 1.0, 0.7, 0.47, 1.5)  # type: ignore[arg-type]

    def floor(gpu: Gpu, s: dict[str, float]) -> float:
        expert = 3 * s["hidden"] * s["inter"]
        weights = expert * s["hit"] * WEIGHT_BYTES[dtype]
        return float(
            kernel_floor(gpu, 2 * expert * s["tokens"] * s["top_k"], peak_flops(gpu, dtype), weights)
        )

    sizes = {"tokens": 16384, "hidden": 7168, "inter": 16384, "top_k": 10, "hit": 512, "padded": 163_840}
    return Case(form, sizes, floor, {})


def quantise() -> Case:
    """Return the quantisation of activations, which has no floor."""
    form = Elementwise(2e-6, 5e-7, 17e6, 1.9, 0.8)
    return Case(form, {"m": 32768, "k": 65536}, lambda gpu, s: 0.0, {})


CASES = {
    "gemm, searched": gemm("bf16", narrow_tile=0.66, split_depth=4700),
    "gemm, by rows": gemm("fp8", middle_tile=0.8, fill_depth=700, ragged_penalty=0.3, row_s=5e-9),
    "gemm, int4": gemm("int4", skinny_tile=1.0, half_tile=1.0, wave_quantisation=1.0, overlap=1.0),
    "decode attention": decode("bf16"),
    "decode attention, fp8": decode("fp8"),
    "prefill attention": prefill("bf16", "fp8", "never"),
    "prefill attention, packed": prefill("bf16", "bf16", "always"),
    "prefill attention, fp8": prefill("fp8", "fp8", "single"),
    "all-reduce": all_reduce(),
    "experts": moe("bf16"),
    "experts, mxfp4": moe("mxfp4"),
    "quantise": quantise(),
}
