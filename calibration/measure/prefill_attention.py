"""Causal attention of whole prompts or chunks, behind a cached prefix or none."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from torch.nn.attention.bias import causal_lower_right
from torch.nn.functional import scaled_dot_product_attention

from calibration.measure.bench import Bench, Prepared
from calibration.measure.case import Case, UnsupportedError


def prepare(case: Case, bench: Bench) -> Prepared:
    """Return attention of ``length`` new tokens over themselves and ``prefix`` tokens before them.

    FlashAttention 3 or 2 where there is one (both align the causal mask to the last key), torch otherwise.
    """
    if case["dtype"] != "bf16" or case["kv_dtype"] != "bf16":
        raise UnsupportedError("prefill attention: only BF16 is timed")
    batch, new, keys = case["batch"], case["length"], case["length"] + case["prefix"]
    attend, kernel, heads_first = _kernel(bench, new, keys)

    def tokens(length: int, heads: int) -> Any:
        shape = (batch, heads, length) if heads_first else (batch, length, heads)
        return bench.random(*shape, case["head_dim"])

    query = tokens(new, case["heads"])
    caches = [
        (tokens(keys, case["kv_heads"]), tokens(keys, case["kv_heads"])) for _ in range(bench.copies(case))
    ]
    return Prepared(tuple(partial(attend, query, *cache) for cache in caches), kernel)


def _kernel(bench: Bench, new: int, keys: int) -> tuple[Callable[..., Any], str, bool]:
    """Return the attention, its name, and whether it takes heads before tokens."""
    for name in ("flash_attn_interface", "flash_attn"):
        if name in bench.libraries:
            return partial(bench.libraries[name].flash_attn_func, causal=True), name, False
    mask = causal_lower_right(new, keys)
    return partial(scaled_dot_product_attention, attn_mask=mask, enable_gqa=True), "torch_sdpa", True
