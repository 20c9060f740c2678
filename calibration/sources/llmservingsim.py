"""Kernel timings in the two formats of LLMServingSim (casys-kaist/LLMServingSim, MIT) as tidy tables.

Each file is of one model and one tensor parallel size; the model gives the shapes that the files do not
state. Only BF16 was timed.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from calibration.sources.tidy import tidy
from servesim.cost.model import Model

MS, US, NS = 1e-3, 1e-6, 1e-9
BF16 = {"dtype": "bf16", "kv_dtype": "bf16"}


def layers(path: Path, model: Model, gpu: str) -> dict[str, pd.DataFrame]:
    """Read a file of layer times by tokens (``layer_name, input, kv_cache, tp_size, latency(ns)``).

    Query, key and value are projected one by one there, and so are gate and up. Its ``attn`` is of one
    unstated batch and left out. Norms run eagerly in several PyTorch kernels each.
    """
    rows = pd.read_csv(path).rename(columns={"input": "tokens"})
    rows = _common(rows, path, gpu, rows["latency(ns)"] * NS)
    tp = int(rows.tp_size.iloc[0])
    hidden, head = model.hidden_size, model.head_dim
    query, mlp = model.num_attention_heads * head // tp, model.intermediate_size // tp
    key = model.kv_heads_per_gpu(tp) * head
    products = {
        "q_proj": (query, hidden),
        "k_proj": (key, hidden),
        "v_proj": (key, hidden),
        "o_proj": (hidden, query),
        "gate_proj": (mlp, hidden),
        "up_proj": (mlp, hidden),
        "down_proj": (hidden, mlp),
        "lm_head": (model.vocab_size // tp, hidden),
    }
    norms = {"input_layernorm": hidden, "post_layernorm": hidden, "final_layernorm": hidden}
    return {
        "gemm": _gemm(rows, "layer_name", products),
        "norm": _elementwise(rows, "layer_name", norms, "norm"),
        "rope": _elementwise(rows, "layer_name", {"rope": query + key}, "rope"),
        "activation": _elementwise(rows, "layer_name", {"act_fn": mlp}, "activation"),
    }


def attention(path: Path, gpu: str) -> dict[str, pd.DataFrame]:
    """Read a file of attention times by batch, chunk and KV length (medians in ms).

    ``kv_cache_size`` counts the chunk itself: it is never smaller, and 128 tokens of a total of 1,024 take
    as long as 1,024 of 1,024 (the chain of KV blocks is what both wait for).
    """
    rows = pd.read_csv(path)
    tp = rows.num_tensor_parallel_workers
    shape = {
        "batch": rows.batch_size,
        "heads": rows.n_q_head // tp,
        "kv_heads": (rows.n_kv_head // tp).clip(lower=1),
        "head_dim": rows.n_embd // rows.n_q_head,
        "window": 0,
    }
    rows = rows.assign(**shape, **BF16)
    times = rows["time_stats.attn_prefill.median"].fillna(rows["time_stats.attn_decode.median"]) * MS
    rows = _common(rows, path, gpu, times)
    prefill = rows[rows.is_prefill].assign(
        length=lambda part: part.prefill_chunk_size,
        prefix=lambda part: part.kv_cache_size - part.prefill_chunk_size,
    )
    decode = rows[~rows.is_prefill].assign(length=lambda part: part.kv_cache_size)
    return {
        "prefill_attention": tidy(prefill, "prefill_attention"),
        "decode_attention": tidy(decode, "decode_attention"),
    }


def dense(path: Path, model: Model, tp: int, gpu: str) -> dict[str, pd.DataFrame]:
    """Read a file of layer times by tokens, projections fused (``layer, tokens, time_us``)."""
    rows = pd.read_csv(path)
    rows = _common(rows, path, gpu, rows.time_us * US)
    products = {f"{linear.name}_proj": (linear.outputs, linear.inputs) for linear in model.linears(tp)}
    hidden, mlp = model.hidden_size, model.intermediate_size // tp
    heads = model.num_attention_heads // tp + model.kv_heads_per_gpu(tp)
    return {
        "gemm": _gemm(rows, "layer", products),
        "norm": _elementwise(rows, "layer", {"layernorm": hidden}, "norm"),
        "rope": _elementwise(rows, "layer", {"rotary_emb": heads * model.head_dim}, "rope"),
        "activation": _elementwise(rows, "layer", {"act_fn": mlp}, "activation"),
    }


def mixed_attention(path: Path, model: Model, tp: int, gpu: str) -> dict[str, pd.DataFrame]:
    """Read the pure rows of a file of mixed batches (``prefill_chunk, kv_prefill, n_decode, kv_decode``).

    Here ``kv_prefill`` are the tokens before the chunk: it may be 0.
    """
    rows = pd.read_csv(path).assign(
        heads=model.num_attention_heads // tp,
        kv_heads=model.kv_heads_per_gpu(tp),
        head_dim=model.head_dim,
        window=0,
        **BF16,
    )
    rows = _common(rows, path, gpu, rows.time_us * US)
    chunks = rows[rows.n_decode == 0].assign(batch=1)
    chunks = chunks.rename(columns={"prefill_chunk": "length", "kv_prefill": "prefix"})
    decodes = rows[rows.prefill_chunk == 0].rename(columns={"n_decode": "batch", "kv_decode": "length"})
    return {
        "prefill_attention": tidy(chunks, "prefill_attention"),
        "decode_attention": tidy(decodes, "decode_attention"),
    }


def _common(rows: pd.DataFrame, path: Path, gpu: str, seconds: pd.Series[float]) -> pd.DataFrame:
    return rows.assign(gpu=gpu, engine="llmservingsim", engine_version="", source=path.name, seconds=seconds)


def _gemm(rows: pd.DataFrame, column: str, products: dict[str, tuple[int, int]]) -> pd.DataFrame:
    """Return the rows of matrix products, each layer being n x k."""
    chosen = rows[rows[column].isin(products)]
    shapes = chosen[column].map(products)
    return tidy(chosen.assign(m=chosen.tokens, n=shapes.str[0], k=shapes.str[1], dtype="bf16"), "gemm")


def _elementwise(rows: pd.DataFrame, column: str, widths: dict[str, int], operation: str) -> pd.DataFrame:
    """Return the rows of an elementwise kernel, each layer with its width per token."""
    chosen = rows[rows[column].isin(widths)]
    return tidy(chosen.assign(width=chosen[column].map(widths), dtype="bf16"), operation)
