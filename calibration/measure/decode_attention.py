"""Attention of one new token per sequence over its KV cache, in pages where a library has that."""

from __future__ import annotations

from functools import partial
from math import ceil

import torch
from torch.nn.functional import scaled_dot_product_attention

from calibration.measure.bench import DTYPES, Bench, Prepared
from calibration.measure.case import Case, UnsupportedError

#: Tokens per page: vLLM's; FlashAttention 2 takes multiples of 256 only.
PAGE, LARGE_PAGE = 16, 256

#: FlashInfer's scratch space: four times that of its examples, for the partial results of large batches.
WORKSPACE_BYTES = 512 << 20

#: Query heads per KV head from which FlashInfer's tensor-core kernels are the faster ones.
TENSOR_CORES_FROM = 4


def prepare(case: Case, bench: Bench) -> Prepared:
    """Return decode attention by FlashInfer, FlashAttention 3 or 2, or torch; the first that there is."""
    if "flashinfer" in bench.libraries:
        return _flashinfer(case, bench)
    if case["kv_dtype"] != "bf16":
        raise UnsupportedError("decode attention over FP8 KV: needs FlashInfer")
    if "flash_attn_interface" in bench.libraries:
        return _flash_attention(case, bench, "flash_attn_interface", PAGE, "page_table")
    if "flash_attn" in bench.libraries:
        return _flash_attention(case, bench, "flash_attn", LARGE_PAGE, "block_table")
    return _torch(case, bench)


def _flashinfer(case: Case, bench: Bench) -> Prepared:
    tables = _pages(case, bench, PAGE)
    batch, pages = tables.shape
    wrapper = bench.libraries["flashinfer"].BatchDecodeWithPagedKVCacheWrapper(
        torch.zeros(WORKSPACE_BYTES, dtype=torch.uint8, device=bench.device),
        "NHD",
        use_tensor_cores=case["heads"] // case["kv_heads"] >= TENSOR_CORES_FROM,
    )
    wrapper.plan(
        torch.arange(0, (batch + 1) * pages, pages, dtype=torch.int32, device=bench.device),
        tables.flatten(),
        torch.full((batch,), (case["length"] - 1) % PAGE + 1, dtype=torch.int32, device=bench.device),
        case["heads"],
        case["kv_heads"],
        case["head_dim"],
        PAGE,
        q_data_type=torch.bfloat16,
        kv_data_type=DTYPES[case["kv_dtype"]],
    )
    query = bench.random(batch, case["heads"], case["head_dim"])
    calls = tuple(partial(wrapper.run, query, cache) for cache in _paged_caches(case, bench, PAGE))
    return Prepared(calls, "flashinfer_batch_decode")


def _flash_attention(case: Case, bench: Bench, library: str, page: int, table: str) -> Prepared:
    """Return FlashAttention's decode; its versions name the ``table`` of pages differently."""
    attend = bench.libraries[library].flash_attn_with_kvcache
    lengths = torch.full((case["batch"],), case["length"], dtype=torch.int32, device=bench.device)
    given = {table: _pages(case, bench, page), "cache_seqlens": lengths, "causal": True}
    query = bench.random(case["batch"], 1, case["heads"], case["head_dim"])
    caches = _paged_caches(case, bench, page)
    return Prepared(tuple(partial(attend, query, *cache, **given) for cache in caches), f"{library}_kvcache")


def _torch(case: Case, bench: Bench) -> Prepared:
    """Return torch's attention, which has no pages: the KV of a sequence lies in one piece."""
    batch, kv_heads, head_dim = case["batch"], case["kv_heads"], case["head_dim"]
    query = bench.random(batch, case["heads"], 1, head_dim)
    attend = partial(scaled_dot_product_attention, enable_gqa=True)
    shape = (batch, kv_heads, case["length"], head_dim)
    caches = [(bench.random(*shape), bench.random(*shape)) for _ in range(bench.copies(case))]
    return Prepared(tuple(partial(attend, query, *cache) for cache in caches), "torch_sdpa_contiguous")


def _pages(case: Case, bench: Bench, page: int) -> torch.Tensor:
    """Return the pages of every sequence, int32 [batch, pages]: scattered, as in a server."""
    batch, pages = case["batch"], ceil(case["length"] / page)
    order = torch.randperm(batch * pages, device=bench.device, generator=bench.generator)
    return order.to(torch.int32).view(batch, pages)


def _paged_caches(case: Case, bench: Bench, page: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return caches of keys and values, each [all pages, page, kv_heads, head_dim]."""
    shape = (case["batch"] * ceil(case["length"] / page), page, case["kv_heads"], case["head_dim"])
    dtype = case["kv_dtype"]
    return [
        (bench.random(*shape, dtype=dtype), bench.random(*shape, dtype=dtype))
        for _ in range(bench.copies(case))
    ]
