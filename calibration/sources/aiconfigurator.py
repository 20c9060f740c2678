"""The kernel timings of the package ``aiconfigurator-core`` (NVIDIA, Apache-2.0) as tidy tables.

The package holds a table per (GPU, operation, engine, engine version): times in milliseconds of kernels as
that engine calls them. What is peculiar to a table is undone in its reader, and said there. Only the
tables of single operations are read.
"""

from __future__ import annotations

import pandas as pd

from calibration.sources.tidy import tidy
from calibration.sources.wheel import Wheel

MS = 1e-3

#: The engine versions whose tables are read; where a table has no such version, the newest before it.
VERSIONS = {
    ("h100-sxm", "vllm"): "0.24.0",
    ("h100-sxm", "trtllm"): "1.3.0rc20",
    ("h100-sxm", "sglang"): "0.5.14",
    ("h200-sxm", "vllm"): "0.24.0",
    ("h200-sxm", "trtllm"): "1.3.0rc20",
    ("h200-sxm", "sglang"): "0.5.14",
    ("a100-sxm-80gb", "vllm"): "0.14.0",
    ("a100-sxm-80gb", "trtllm"): "1.0.0",
    ("a100-sxm-80gb", "sglang"): "0.5.10",
    ("b200-sxm", "vllm"): "0.24.0",
    ("b200-sxm", "trtllm"): "1.3.0rc20",
    ("b200-sxm", "sglang"): "0.5.14",
    ("l40s", "vllm"): "0.24.0",
    ("l40s", "trtllm"): "1.3.0rc20",
    ("l40s", "sglang"): "0.5.14",
    ("rtx-pro-6000", "vllm"): "0.24.0",
    ("rtx-pro-6000", "trtllm"): "1.3.0rc20",
    ("rtx-pro-6000", "sglang"): "0.5.14",
}

_DTYPES = {"bfloat16": "bf16", "int4_wo": "int4", "int8_wo": "int8", "sq": "int8_sq", "w4a16_mxfp4": "mxfp4"}
_ELEMENT_BYTES = {"bfloat16": 2, "half": 2, "int8": 1}

#: Engines whose "fp8" GEMM rows include the quantisation of the activations.
_QUANTISE_INSIDE = ("vllm", "trtllm")

#: Engines whose quantise table is not of a kernel that they serve with, and whose stands for it.
_QUANTISES_AS = {"sglang": "vllm"}

#: Below this multiple of the table's shortest time the "fp8_block" rows of vllm show the host, not the GPU.
_HOST_BOUND = 2.0

#: Models whose experts have no gate (squared ReLU): (hidden, inter, experts, top_k) of Nemotron 3 Nano, Super
#: and Ultra. The vllm and sglang tables do not tell them apart by a column, trtllm's do.
_NOT_GATED = {(2688, 1856, 128, 6), (1024, 2688, 512, 22), (2048, 5120, 512, 22)}


def gemm(wheel: Wheel, gpu: str, engine: str) -> pd.DataFrame | None:
    """Return the table of dense matrix products C[m, n] = A[m, k] B[k, n].

    - "fp8" rows of vllm and trtllm time three kernels, the activations' quantisation included: the two
      quantise tables are taken out, which leaves the GEMM that also runs behind a fused quantisation. Rows
      without a counterpart there, or with nothing left, are dropped.
    - "fp8_block" rows of vllm were launched eagerly and never take less than the host does (55 us on an
      H100): rows shorter than twice the shortest are dropped.
    """
    rows = _read(wheel, gpu, "gemm", engine, "gemm_perf")
    if rows is None:
        return None
    rows["dtype"] = rows.gemm_dtype.replace(_DTYPES)
    if engine in _QUANTISE_INSIDE:
        rows = _without_quantisation(rows, quantise(wheel, gpu, engine))
    if engine == "vllm":
        block = rows.dtype == "fp8_block"
        rows = rows[~block | (rows.seconds > _HOST_BOUND * rows.seconds[block].min())]
    return tidy(rows, "gemm")


def _without_quantisation(rows: pd.DataFrame, kernels: pd.DataFrame | None) -> pd.DataFrame:
    if kernels is None:
        return rows[rows.dtype != "fp8"]
    both = (
        kernels.groupby(["m", "k"]).seconds.agg(["sum", "size"]).query("size == 2")["sum"].rename("quantise")
    )
    rows = rows.join(both, on=["m", "k"])
    left = (rows.seconds - rows["quantise"]).where(rows.dtype == "fp8", rows.seconds)
    return rows.assign(seconds=left)[left > 0]


def quantise(wheel: Wheel, gpu: str, engine: str) -> pd.DataFrame | None:
    """Return the table of the kernels that quantise activations [m, k] to FP8.

    ``static`` (table ``scale_matrix``) scales by a given number; ``compute_scale`` is what finding the
    scale costs on top. For vllm the latter is a difference of two timings and as noisy as both. Times of
    0 are dropped.

    sglang's static rows time a chain of torch's own operations (divide, clamp, cast, copy), which takes four
    launches and intermediate tensors: 3.3 times as long as vllm's one kernel for a row of 8,192, and 9 times
    for 32,768 (H100). It serves with one kernel, of which the tables say only that it is faster than the
    chain (its difference to it is cut at 0). So vllm's static rows on the same GPU stand for them.
    """
    names = {"scale_matrix_perf": "static", "computescale_perf": "compute_scale"}
    if engine in _QUANTISES_AS:
        engine, names = _QUANTISES_AS[engine], {"scale_matrix_perf": "static"}
    tables = [
        rows.assign(dtype=rows.quant_dtype, mode=mode)
        for name, mode in names.items()
        if (rows := _read(wheel, gpu, "quantize", engine, name)) is not None
    ]
    if not tables:
        return None
    both = pd.concat(tables)
    return tidy(both[both.seconds > 0], "quantise")


def decode_attention(wheel: Wheel, gpu: str, engine: str) -> pd.DataFrame | None:
    """Return the table of attention of one new token per sequence over a paged KV cache.

    A row's KV length is the ``step`` tokens of its past and the new one. Lengths are equal in a batch. KV
    that fits the L2 cache is hot in these timings (the same buffers over and over), which it is not in a
    server: the form keeps the two apart.
    """
    rows = _read(wheel, gpu, "attention", engine, "generation_attention_perf")
    if rows is None:
        return None
    return tidy(_attention(rows).assign(length=rows.isl + rows.step), "decode_attention")


def prefill_attention(wheel: Wheel, gpu: str, engine: str) -> pd.DataFrame | None:
    """Return the table of causal attention of whole prompts; ``step`` is their cached prefix."""
    rows = _read(wheel, gpu, "attention", engine, "context_attention_perf")
    if rows is None:
        return None
    rows = _attention(rows).assign(length=rows.isl, prefix=rows.step)
    return tidy(rows.assign(dtype=rows.attn_dtype.replace(_DTYPES)), "prefill_attention")


def _attention(rows: pd.DataFrame) -> pd.DataFrame:
    """Name the columns of attention; older tables have no windows."""
    names = {
        "batch_size": "batch",
        "num_heads": "heads",
        "num_key_value_heads": "kv_heads",
        "window_size": "window",
    }
    if "window_size" not in rows:
        rows = rows.assign(window_size=0)
    return rows.rename(columns=names).assign(kv_dtype=rows.kv_cache_dtype.replace(_DTYPES))


def all_reduce(wheel: Wheel, gpu: str, engine: str) -> pd.DataFrame | None:
    """Return the table of the engine's all-reduce.

    ``message_size`` counts elements, here it becomes bytes: read as bytes, eight H100 would reach half of
    their links. ``eager`` rows carry some 20 us of launches; ``graph`` rows are replayed in a CUDA graph,
    as decode steps are. trtllm's rows, from 3 us on, are of this kind, too.
    """
    rows = _read(wheel, gpu, "comm", engine, "custom_allreduce_perf")
    if rows is None:
        return None
    rows["mode"] = rows.kernel_source.str.extract("_(eager|graph)$", expand=False).fillna("graph")
    size = rows.message_size * rows.allreduce_dtype.map(_ELEMENT_BYTES)
    return tidy(rows.assign(gpus=rows.num_gpus, bytes=size), "all_reduce")


def nccl(wheel: Wheel, gpu: str, version: str) -> pd.DataFrame | None:
    """Return the all-reduces of NCCL's table: elements become bytes, repeated rows one.

    The tables hold rows of several runs: 504 of the 1,008 rows of 2.27.3 on the H100 repeat a shape, six
    of them exactly. Their ``version`` column may differ from the folder they lie in; it is what is kept.
    """
    path = wheel.path(gpu, "comm", "nccl", version, "nccl_perf")
    if path is None:
        return None
    rows = wheel.read(path).query("op_name == 'all_reduce'")
    size = rows.message_size * rows.nccl_dtype.map(_ELEMENT_BYTES)
    rows = rows.assign(gpu=gpu, engine="nccl", engine_version=rows.version, seconds=rows.latency * MS)
    return tidy(rows.assign(gpus=rows.num_gpus, bytes=size, mode="nccl"), "all_reduce")


def moe(wheel: Wheel, gpu: str, engine: str) -> pd.DataFrame | None:
    """Return the table of the experts' two grouped matrix products, the activation between them included.

    ``inter`` is of the whole expert, ``tp`` divides it and ``ep`` the experts. ``kernel`` says which of
    an engine's kernels ran. ``distribution`` says how tokens fall on experts: ``balanced``, or a power law
    with its exponent.
    """
    rows = _read(wheel, gpu, "moe", engine, "moe_perf")
    if rows is None:
        return None
    names = {
        "kernel_source": "kernel",
        "num_tokens": "tokens",
        "hidden_size": "hidden",
        "inter_size": "inter",
        "num_experts": "experts",
        "topk": "top_k",
        "moe_tp_size": "tp",
        "moe_ep_size": "ep",
    }
    rows = rows.rename(columns=names)
    shapes = pd.MultiIndex.from_frame(rows[["hidden", "inter", "experts", "top_k"]])
    plain = rows.kernel.str.contains("nongated") | shapes.isin(_NOT_GATED)
    return tidy(rows.assign(dtype=rows.moe_dtype.replace(_DTYPES), gated=~plain), "moe")


def _read(wheel: Wheel, gpu: str, operation: str, engine: str, name: str) -> pd.DataFrame | None:
    """Return a table with the common columns, milliseconds turned into seconds; None where there is none."""
    path = wheel.path(gpu, operation, engine, VERSIONS[gpu, engine], name)
    if path is None:
        return None
    rows = wheel.read(path)
    return rows.assign(gpu=gpu, engine=engine, engine_version=rows.version, seconds=rows.latency * MS)
