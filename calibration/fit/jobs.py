"""The fits of a profile: for each operation and format, its rows, its form and where the search starts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import yaml

from calibration.fit.job import Array, Job, Start
from calibration.fit.routing import load
from servesim.cost.gpu import Gpu
from servesim.cost.kernels.all_reduce import AllReduce
from servesim.cost.kernels.decode_attention import DecodeAttention
from servesim.cost.kernels.elementwise import Elementwise
from servesim.cost.kernels.floor import KV_BYTES, WEIGHT_BYTES, kernel_floor, peak_flops
from servesim.cost.kernels.gemm import Gemm
from servesim.cost.kernels.moe import Moe
from servesim.cost.kernels.prefill_attention import PrefillAttention
from servesim.cost.model import Model

CONF = Path(__file__).parents[2] / "conf"

#: Streaming multiprocessors, from NVIDIA's architecture white papers (A100: Ampere, H100 and H200: Hopper,
#: L40S: Ada; RTX PRO 6000 and B200: Blackwell).
MULTIPROCESSORS = {
    "a100-sxm-80gb": 108,
    "h100-sxm": 132,
    "h200-sxm": 132,
    "b200-sxm": 148,
    "l40s": 142,
    "rtx-pro-6000": 188,
}

#: Fewer rows than this are no fit.
FEWEST_ROWS = 60

#: Products with fewer columns or a shorter depth are no layer of a language model.
CORE = 512

#: The models, and tensor parallel sizes, whose layers are scored by themselves.
LLM = ("llama3.1-8b", "llama3.1-70b", "qwen3-32b")
TENSOR_PARALLEL_SIZES = (1, 2, 4, 8)

#: The kernel of each engine that stands for a format of experts, by the beginning of its name.
MOE_KERNELS = {
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
}


class Work(NamedTuple):
    """What a kernel cannot avoid: its FLOPs, and the bytes of weights or KV that it reads from HBM."""

    flops: Array
    hbm_bytes: Array


def gpu_named(name: str) -> Gpu:
    """Return a GPU of ``conf/gpu``."""
    return Gpu(**yaml.safe_load((CONF / "gpu" / f"{name}.yaml").read_text()))


def model_named(name: str) -> Model:
    """Return a model of ``conf/model``."""
    return Model(**yaml.safe_load((CONF / "model" / f"{name}.yaml").read_text()))


# ---- matrix products

GEMM = {
    "launch_s": Start(2e-6, 1e-7, 1e-4),
    "bandwidth": Start(0.83, 0.2, 1),
    "input_bandwidth": Start(0.5, 0.02, 20),
    "output_bandwidth": Start(1.1, 0.05, 50),
    "tile_rate": Start(0.85, 0.1, 1.3),
    "half_tile": Start(0.5, 0.05, 1),
    "skinny_tile": Start(0.9, 0.05, 1),
    "wave_quantisation": Start(0.1, 0.01, 1),
    "overlap": Start(3, 1, 20),
}
SEARCHED = {"narrow_tile": Start(0.6, 0.3, 1), "split_depth": Start(3000, 64, 1e5)}
BY_ROWS = {
    "middle_tile": Start(0.8, 0.3, 1),
    "fill_depth": Start(100, 1, 3000),
    "ragged_penalty": Start(0.1, 1e-3, 2),
}


def gemm_jobs(gpu: Gpu, table: pd.DataFrame) -> Iterator[Job]:
    """Yield one fit per format, of the two kinds of library that :class:`Gemm` knows."""
    core = table[(table.n >= CORE) & (table.k >= CORE)]
    shapes = pd.MultiIndex.from_tuples(sorted(llm_shapes()))
    for dtype, rows in core.groupby("dtype"):
        if len(rows) < FEWEST_ROWS or dtype not in WEIGHT_BYTES:
            continue
        llm = pd.MultiIndex.from_frame(rows[["n", "k"]]).isin(shapes) & (rows.m <= 8192)
        aligned = rows.m % 4 == 0
        yield Job(
            operation="gemm",
            name=str(dtype),
            rows=rows,
            shape=("m", "n", "k"),
            group=("n", "k"),
            ranges=("m", "n", "k"),
            coefficients=GEMM | (SEARCHED if _searches(str(dtype), str(rows.engine.iloc[0])) else BY_ROWS),
            build=partial(_gemm, str(dtype), MULTIPROCESSORS[gpu.name]),
            predict=lambda form, part: form.seconds(gpu, *_columns(part, "m", "n", "k"), ragged=True),
            roofline=lambda part, dtype=str(dtype): gemm_floor(gpu, dtype, part),
            excluded=rows.seconds.to_numpy() < gemm_floor(gpu, str(dtype), rows),
            subsets={
                "llm_shapes": llm.to_numpy(),
                "m_to_64": rows.m.le(64).to_numpy(),
                "m_65_to_512": rows.m.between(65, 512).to_numpy(),
                "m_from_513": rows.m.ge(513).to_numpy(),
                "m_aligned": aligned.to_numpy(),
            },
        )


def _searches(dtype: str, engine: str) -> bool:
    """Return whether the library searches for its tiles: cuBLAS does, which TensorRT-LLM also has for FP8."""
    return dtype == "bf16" or (dtype, engine) == ("fp8", "trtllm")


def _gemm(dtype: str, multiprocessors: int, **coefficients: float) -> Gemm:
    return Gemm(dtype, multiprocessors, **coefficients)


def llm_shapes() -> set[tuple[int, int]]:
    """Return (n, k) of the linear layers of the models above, on one GPU at each tensor parallel size."""
    return {
        (linear.outputs, linear.inputs)
        for name in LLM
        for size in TENSOR_PARALLEL_SIZES
        for linear in model_named(name).linears(size)
    }


def gemm_work(dtype: str, rows: pd.DataFrame) -> Work:
    """Return the work of products: their arithmetic, and the weights."""
    m, n, k = _columns(rows, "m", "n", "k")
    return Work(2 * m * n * k, n * k * WEIGHT_BYTES[dtype])


def gemm_floor(gpu: Gpu, dtype: str, rows: pd.DataFrame) -> Array:
    """Return the datasheet's time of products."""
    flops, hbm_bytes = gemm_work(dtype, rows)
    return kernel_floor(gpu, flops, peak_flops(gpu, dtype), hbm_bytes)


# ---- attention

DECODE = {
    "launch_s": Start(1e-5, 1e-7, 1e-4),
    "split_s": Start(1e-6, 1e-9, 1e-5),
    "wave_s": Start(3.7e-6, 1e-8, 1e-4),
    "bandwidth": Start(0.92, 0.1, 1),
    "stream_bandwidth": Start(0.8, 1e-3, 5),
    "overlap": Start(1.4, 1, 10),
    "cache_bytes": Start(44e6, 1e6, 1e9),
    "cache_bandwidth": Start(3, 1, 20),
}
PREFILL = {
    "launch_s": Start(1e-5, 1e-7, 1e-4),
    "block_rate": Start(0.7, 0.1, 1.2),
    "row_s": Start(0.3e-6, 1e-9, 1e-4),
    "chain_s": Start(1.4e-6, 1e-9, 1e-5),
    "bandwidth": Start(0.6, 0.05, 20),
    "kv_bandwidth": Start(0.6, 0.05, 20),
    "overlap": Start(2.4, 1, 10),
}
HEADS = ("batch", "heads", "kv_heads", "head_dim", "length")
ATTENTION_SHAPE = (*HEADS, "window")


def decode_attention_jobs(gpu: Gpu, table: pd.DataFrame) -> Iterator[Job]:
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
            coefficients=DECODE,
            build=partial(DecodeAttention, str(kv_dtype), MULTIPROCESSORS[gpu.name]),
            predict=partial(decode_seconds, gpu),
            roofline=lambda part, kv_dtype=str(kv_dtype): decode_floor(gpu, kv_dtype, part),
            subsets={
                "heads_per_kv_head_4_to_16": (rows.heads / rows.kv_heads).between(4, 16).to_numpy(),
                "kv_from_100_mb": kv_bytes.ge(1e8).to_numpy(),
            },
        )


def decode_seconds(gpu: Gpu, form: DecodeAttention, rows: pd.DataFrame) -> Array:
    """Return a form's times of table rows, whose KV stays in the cache where it fits."""
    return form.seconds(gpu, *_columns(rows, *HEADS), window=rows.window.to_numpy(), resident=True)


def decode_work(kv_dtype: str, rows: pd.DataFrame) -> Work:
    """Return the work of decode attention: its arithmetic, and KV once."""
    batch, heads, kv_heads, head_dim, length = _columns(rows, *HEADS)
    kv_bytes = 2 * batch * kv_heads * length * head_dim * KV_BYTES[kv_dtype]
    return Work(4 * batch * heads * length * head_dim, kv_bytes)


def decode_floor(gpu: Gpu, kv_dtype: str, rows: pd.DataFrame) -> Array:
    """Return the datasheet's time of decode attention."""
    flops, kv_bytes = decode_work(kv_dtype, rows)
    return kernel_floor(gpu, flops, gpu.bf16_flops_per_s, kv_bytes)


def prefill_attention_jobs(gpu: Gpu, table: pd.DataFrame) -> Iterator[Job]:
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
            coefficients=PREFILL,
            build=partial(PrefillAttention, str(dtype), str(kv_dtype), MULTIPROCESSORS[gpu.name]),
            predict=partial(prefill_seconds, gpu),
            roofline=lambda part, dtype=str(dtype): prefill_floor(gpu, dtype, part),
            subsets={
                "heads_per_kv_head_4_to_16": (rows.heads / rows.kv_heads).between(4, 16).to_numpy(),
                "length_from_512": rows.length.ge(512).to_numpy(),
            },
        )


def prefill_seconds(gpu: Gpu, form: PrefillAttention, rows: pd.DataFrame) -> Array:
    """Return a form's times of table rows."""
    return form.seconds(
        gpu, *_columns(rows, *HEADS), prefix=rows.prefix.to_numpy(), window=rows.window.to_numpy()
    )


def prefill_work(rows: pd.DataFrame) -> Work:
    """Return the work of causal attention: its arithmetic, and KV once."""
    batch, heads, kv_heads, head_dim, length = _columns(rows, *HEADS)
    prefix = rows.prefix.to_numpy()
    pairs = length * (length / 2 + prefix)
    kv_bytes = 2 * batch * kv_heads * (length + prefix) * head_dim * rows.kv_dtype.map(KV_BYTES).to_numpy()
    return Work(4 * batch * heads * pairs * head_dim, kv_bytes)


def prefill_floor(gpu: Gpu, dtype: str, rows: pd.DataFrame) -> Array:
    """Return the datasheet's time of causal attention."""
    flops, kv_bytes = prefill_work(rows)
    return kernel_floor(gpu, flops, peak_flops(gpu, dtype), kv_bytes)


# ---- collectives, experts, quantisation

ALL_REDUCE = {
    "quick_s": Start(4e-6, 1e-7, 1e-4),
    "quick_rate": Start(0.2, 0.001, 1),
    "steady_s": Start(1e-5, 1e-7, 1e-3),
    "steady_rate": Start(0.5, 0.001, 1),
}

#: Several, because the error has several minima; the last has the second way begin beyond a megabyte.
ALL_REDUCE_STARTS = (
    *({"quick_rate": quick, "steady_rate": steady} for quick in (0.05, 0.2) for steady in (0.3, 0.6)),
    {"quick_s": 9e-5, "quick_rate": 0.6, "steady_s": 4e-6, "steady_rate": 0.5},
)


def all_reduce_jobs(gpu: Gpu, table: pd.DataFrame) -> Iterator[Job]:
    """Yield one fit per number of GPUs: graph rows of 8 KB to 140 MB."""
    rows = table[(table["mode"] == "graph") & table.bytes.between(8e3, 140e6)]
    for gpus, part in rows.groupby("gpus"):
        yield Job(
            operation="all_reduce",
            name=f"gpus_{gpus}",
            rows=part,
            shape=("gpus", "bytes"),
            group=("bytes",),
            ranges=("bytes",),
            coefficients=ALL_REDUCE,
            build=partial(_all_reduce, gpus),
            predict=lambda form, part: form.seconds(gpu, part.bytes.to_numpy()),
            roofline=lambda part, gpus=gpus: all_reduce_bytes(gpus, part) / gpu.nvlink_bytes_per_s,
            starts=ALL_REDUCE_STARTS,
        )


def all_reduce_bytes(gpus: int, rows: pd.DataFrame) -> Array:
    """Return the bytes that each GPU of a ring sends: every part of the message once reduced, once shared."""
    return rows.bytes.to_numpy(float) * (2 - 2 / gpus)


def _all_reduce(
    gpus: int, quick_s: float, quick_rate: float, steady_s: float, steady_rate: float
) -> AllReduce:
    """Return the form with the way that starts sooner as the quick one, whichever a fit has found it as."""
    (quick_s, quick_rate), (steady_s, steady_rate) = sorted([(quick_s, quick_rate), (steady_s, steady_rate)])
    return AllReduce(gpus, quick_s, quick_rate, steady_s, steady_rate)


MOE = {
    "launch_s": Start(3e-5, 1e-6, 1e-3),
    "expert_s": Start(1e-7, 1e-10, 1e-4),
    "bandwidth": Start(0.9, 0.05, 1),
    "rate": Start(0.5, 0.05, 2),
    "activation_bandwidth": Start(0.5, 0.05, 20),
    "overlap": Start(2, 1, 10),
}


def moe_jobs(gpu: Gpu, table: pd.DataFrame) -> Iterator[Job]:
    """Yield one fit per format: gated experts, all of them on every GPU (no expert parallelism)."""
    table = table[table.gated & (table.ep == 1)]
    for dtype, prefixes in MOE_KERNELS[table.engine.iloc[0]].items():
        rows = table[table["dtype"].eq(dtype) & table.kernel.str.startswith(prefixes)]
        if len(rows) < FEWEST_ROWS:
            continue
        shapes = zip(rows.tokens, rows.top_k, rows.experts, rows.distribution, strict=True)
        hit, padded = np.array([load(*shape) for shape in shapes], dtype=float).T
        rows = rows.assign(inter=rows.inter // rows.tp, hit=hit, padded=padded)
        floor = moe_floor(gpu, dtype, rows)
        yield Job(
            operation="moe",
            name=dtype,
            rows=rows,
            shape=("tokens", "hidden", "inter", "experts", "top_k", "distribution"),
            group=_model_columns(rows),
            ranges=("tokens", "hidden", "inter", "experts", "top_k"),
            coefficients=MOE,
            build=partial(Moe, dtype),
            predict=lambda form, part: form.seconds(
                gpu, *_columns(part, "tokens", "hidden", "inter", "top_k", "hit", "padded")
            ),
            roofline=partial(moe_floor, gpu, dtype),
            excluded=rows.seconds.to_numpy() < floor,
            subsets={
                str(name): rows.distribution.eq(name).to_numpy()
                for name in sorted(rows.distribution.unique())
            },
        )


def _model_columns(rows: pd.DataFrame) -> tuple[str, ...]:
    """Return what makes a whole shape of experts: a model, or its split where the table has but one."""
    model = ("hidden", "experts", "top_k")
    return model if len(rows[list(model)].drop_duplicates()) > 1 else (*model, "inter")


def moe_work(dtype: str, rows: pd.DataFrame) -> Work:
    """Return the work of experts: their arithmetic, and the weights of those hit."""
    expert = (3 * rows.hidden * rows.inter).to_numpy(float)
    flops = 2 * expert * (rows.tokens * rows.top_k).to_numpy()
    return Work(flops, expert * rows.hit.to_numpy() * WEIGHT_BYTES[dtype])


def moe_floor(gpu: Gpu, dtype: str, rows: pd.DataFrame) -> Array:
    """Return the datasheet's time of experts."""
    flops, hbm_bytes = moe_work(dtype, rows)
    return kernel_floor(gpu, flops, peak_flops(gpu, dtype), hbm_bytes)


ELEMENTWISE = {
    "launch_s": Start(2e-6, 1e-7, 1e-4),
    "row_s": Start(0.5e-6, 1e-9, 1e-5),
    "cache_bytes": Start(16e6, 1e5, 1e9),
    "cache_bandwidth": Start(2, 0.1, 50),
    "bandwidth": Start(0.8, 0.05, 1),
}


def quantise_jobs(gpu: Gpu, table: pd.DataFrame) -> Iterator[Job]:
    """Yield fits of static quantisation to FP8, and of dynamic: static plus finding the scale."""
    core = table[table.k >= CORE]
    static = core[core["mode"] == "static"]
    both = core.groupby(["m", "k"], as_index=False).agg(seconds=("seconds", "sum"), parts=("mode", "size"))
    for name, rows in (("static", static), ("dynamic", both[both.parts == 2])):
        if len(rows) < FEWEST_ROWS:
            continue
        yield Job(
            operation="quantise",
            name=name,
            rows=rows,
            shape=("m", "k"),
            group=("k",),
            ranges=("m", "k"),
            coefficients=ELEMENTWISE,
            build=Elementwise,
            predict=lambda form, part: form.seconds(gpu, *_columns(part, "m", "k")),
            roofline=lambda part: quantise_bytes(part) / gpu.hbm_bytes_per_s,
        )


def quantise_bytes(rows: pd.DataFrame) -> Array:
    """Return the bytes of activations that are read in BF16 and written in FP8."""
    m, k = _columns(rows, "m", "k")
    return 3 * m * k


def _columns(rows: pd.DataFrame, *names: str) -> list[Array]:
    return [rows[name].to_numpy(dtype=float) for name in names]
