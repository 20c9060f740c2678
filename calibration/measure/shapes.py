"""The shapes of language models that may be timed: the grids from which a plan takes its cases."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from calibration.conf import model_named
from calibration.fit.gemm import LLM, TENSOR_PARALLEL_SIZES, llm_shapes
from calibration.measure.case import Case

TOKENS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
BETWEEN = (48, 96, 192, 384, 768, 1536, 3072, 6144)  # rows that fill tiles and waves of blocks unevenly

#: (heads, kv_heads) of one GPU: Llama 8B, and Llama 70B or Qwen3 32B, at TP 1, 2, 4 and 8.
HEADS = ((32, 8), (16, 4), (8, 2), (4, 1), (64, 8), (32, 4), (16, 2), (8, 1))
HEAD_DIM = 128

#: Tokens whose KV is held at once, at most: 8.6 GB with 8 KV heads in BF16.
MOST_KV_TOKENS = 1 << 21

#: New tokens of a prefill step, at most, and keys in all.
MOST_NEW_TOKENS, MOST_KEYS = 1 << 15, 1 << 16

MESSAGES = tuple(1 << power for power in range(13, 28))  # 8 KiB to 128 MiB
COPIES = tuple(1 << power for power in range(12, 29, 2))  # 4 KiB to 256 MiB
LAUNCHES = (1, 8, 64, 512)
GPUS = (2, 4, 8)


class Experts(NamedTuple):
    """The experts of a model, by its ``config.json`` on Hugging Face."""

    hidden: int
    inter: int
    experts: int
    top_k: int


EXPERTS = (
    Experts(4096, 14336, 8, 2),  # mistralai/Mixtral-8x7B-v0.1
    Experts(2048, 768, 128, 8),  # Qwen/Qwen3-30B-A3B
    Experts(4096, 1536, 128, 8),  # Qwen/Qwen3-235B-A22B
    Experts(2880, 2880, 128, 4),  # openai/gpt-oss-120b
)


def on_gpu() -> dict[str, list[Case]]:
    """Return all cases for a GPU, by operation."""
    return {
        "gemm": list(_gemm()),
        "decode_attention": list(_decode()),
        "prefill_attention": list(_prefill()),
        "norm": _elementwise("norm", _hidden_sizes()),
        "rope": _elementwise("rope", {(heads + kv_heads) * HEAD_DIM for heads, kv_heads in HEADS}),
        "activation": _elementwise("activation", _inner_sizes()),
        "quantise": [
            Case.of("quantise", dtype="fp8", mode=mode, m=m, k=k)
            for m, k, mode in product(TOKENS, _quantised_sizes(), ("static", "compute_scale"))
        ],
        "moe": list(_moe()),
        "copy": [
            Case.of("copy", direction=direction, bytes=size)
            for size, direction in product(COPIES, ("device", "host_to_device", "device_to_host"))
        ],
        "launch": _launches(LAUNCHES),
        "all_reduce": _messages("all_reduce", GPUS, MESSAGES, ("graph", "eager")),
        "all_to_all": _messages("all_to_all", GPUS, MESSAGES, ("graph", "eager")),
    }


def on_cpu() -> dict[str, list[Case]]:
    """Return a few tiny cases of every operation, some of which need a GPU: for trying the runner."""
    attention = {"heads": 4, "kv_heads": 2, "head_dim": 16, "window": 0}
    both = {"dtype": "bf16", "kv_dtype": "bf16"}
    experts = {"hidden": 32, "inter": 64, "experts": 4, "top_k": 2, "tp": 2, "ep": 1, "gated": True}
    return {
        "gemm": [
            Case.of("gemm", dtype=dtype, m=m, n=64, k=32) for dtype, m in product(("bf16", "fp8"), (1, 16))
        ],
        "decode_attention": [
            Case.of("decode_attention", kv_dtype=kv_dtype, batch=2, length=33, **attention)
            for kv_dtype in ("bf16", "fp8")
        ],
        "prefill_attention": [
            Case.of("prefill_attention", batch=2, length=8, prefix=prefix, **both, **attention)
            for prefix in (0, 16)
        ],
        **{name: _elementwise(name, {256}, (1, 8)) for name in ("norm", "rope", "activation")},
        "quantise": [
            Case.of("quantise", dtype="fp8", mode=mode, m=8, k=64) for mode in ("static", "compute_scale")
        ],
        "moe": [
            Case.of("moe", dtype="bf16", tokens=8, distribution=spread, **experts)
            for spread in ("balanced", "power_law_1.2")
        ],
        "copy": [
            Case.of("copy", direction=direction, bytes=4096)
            for direction in ("host", "device", "host_to_device", "device_to_host")
        ],
        "launch": _launches((2,)),
        "all_reduce": _messages("all_reduce", (2,), (1024, 4096), ("eager",)),
        "all_to_all": _messages("all_to_all", (2,), (1024,), ("eager",)),
    }


def _gemm() -> Iterator[Case]:
    """Yield the layers' products by format, and the LM heads' in BF16: one row per sequence there."""
    for (n, k), m, dtype in product(sorted(llm_shapes()), (*TOKENS, *BETWEEN), ("bf16", "fp8")):
        yield Case.of("gemm", dtype=dtype, m=m, n=n, k=k)
    for name, tp, m in product(LLM, TENSOR_PARALLEL_SIZES, TOKENS):
        model = model_named(name)
        if m <= 512:
            yield Case.of("gemm", dtype="bf16", m=m, n=model.vocab_size // tp, k=model.hidden_size)


def _decode() -> Iterator[Case]:
    lengths = tuple(128 << doubling for doubling in range(11))
    batches = tuple(1 << doubling for doubling in range(10))
    for (heads, kv_heads), batch, length, kv_dtype in product(HEADS, batches, lengths, ("bf16", "fp8")):
        if batch * length <= MOST_KV_TOKENS:
            yield Case.of(
                "decode_attention",
                kv_dtype=kv_dtype,
                batch=batch,
                heads=heads,
                kv_heads=kv_heads,
                head_dim=HEAD_DIM,
                window=0,
                length=length,
            )


def _prefill() -> Iterator[Case]:
    lengths, prefixes = (*TOKENS[4:], 1 << 15), (0, 512, 2048, 8192, 32768)
    for (heads, kv_heads), batch, length, prefix in product(HEADS, (1, 2, 4, 8), lengths, prefixes):
        if batch * length <= MOST_NEW_TOKENS and batch * (length + prefix) <= MOST_KEYS:
            yield Case.of(
                "prefill_attention",
                dtype="bf16",
                kv_dtype="bf16",
                batch=batch,
                heads=heads,
                kv_heads=kv_heads,
                head_dim=HEAD_DIM,
                window=0,
                length=length,
                prefix=prefix,
            )


def _moe() -> Iterator[Case]:
    spreads = ("balanced", "power_law_1.2")
    for experts, tp, tokens, spread in product(EXPERTS, TENSOR_PARALLEL_SIZES, TOKENS[:-1], spreads):
        yield Case.of(
            "moe",
            dtype="bf16",
            tokens=tokens,
            tp=tp,
            ep=1,
            distribution=spread,
            gated=True,
            **experts._asdict(),
        )


def _elementwise(operation: str, widths: set[int], tokens: tuple[int, ...] = TOKENS) -> list[Case]:
    return [
        Case.of(operation, dtype="bf16", tokens=rows, width=width)
        for rows, width in product(tokens, sorted(widths))
    ]


def _messages(
    operation: str, gpus: tuple[int, ...], sizes: tuple[int, ...], modes: tuple[str, ...]
) -> list[Case]:
    return [
        Case.of(operation, gpus=number, bytes=size, mode=mode)
        for number, size, mode in product(gpus, sizes, modes)
    ]


def _launches(kernels: tuple[int, ...]) -> list[Case]:
    return [
        Case.of("launch", mode=mode, kernels=number) for number, mode in product(kernels, ("eager", "graph"))
    ]


def _hidden_sizes() -> set[int]:
    return {model_named(name).hidden_size for name in LLM}


def _inner_sizes() -> set[int]:
    return {model_named(name).intermediate_size // tp for name, tp in product(LLM, TENSOR_PARALLEL_SIZES)}


def _quantised_sizes() -> list[int]:
    """Return the inputs of the layers' products, the shortest and every other one from there."""
    return sorted({k for _, k in llm_shapes()})[::2]
