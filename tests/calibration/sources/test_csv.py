"""CSV files in the formats of Vidur and LLMServingSim, made small, and own measurements there and back."""

from pathlib import Path

import pandas as pd
import pytest

from calibration.sources import llmservingsim, measurements, vidur
from calibration.sources.tidy import SourceError, tidy
from tests.cost.shipped import model

LLAMA = model("llama3.1-70b")


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    pd.DataFrame(rows).to_csv(path, index=False)
    return path


def test_layers_get_their_shapes_from_the_model(tmp_path: Path) -> None:
    rows = [
        {"layer_name": name, "input": 16, "kv_cache": 0, "tp_size": 4, "latency(ns)": 20_000}
        for name in ("q_proj", "down_proj", "act_fn", "input_layernorm", "rope", "attn")
    ]
    tables = llmservingsim.layers(write(tmp_path / "l.csv", rows), LLAMA, "h100-sxm")
    gemm = tables["gemm"]
    assert set(zip(gemm.m, gemm.n, gemm.k, strict=True)) == {(16, 2048, 8192), (16, 8192, 7168)}
    assert gemm.seconds.tolist() == [20e-6, 20e-6]
    assert tables["activation"].width.tolist() == [7168]
    assert tables["rope"].width.tolist() == [18 * 128]


def test_attention_by_chunk_counts_the_chunk_into_the_cache(tmp_path: Path) -> None:
    shape = {"n_embd": 8192, "n_q_head": 64, "n_kv_head": 8, "num_tensor_parallel_workers": 4}
    prefill = {"time_stats.attn_prefill.median": 0.03, "time_stats.attn_decode.median": None}
    decode = {"time_stats.attn_prefill.median": None, "time_stats.attn_decode.median": 0.04}
    rows: list[dict[str, object]] = [
        {
            **shape,
            **prefill,
            "batch_size": 1,
            "prefill_chunk_size": 128,
            "kv_cache_size": 384,
            "is_prefill": True,
        },
        {
            **shape,
            **decode,
            "batch_size": 9,
            "prefill_chunk_size": 0,
            "kv_cache_size": 512,
            "is_prefill": False,
        },
    ]
    tables = llmservingsim.attention(write(tmp_path / "a.csv", rows), "h100-sxm")
    chunk, step = tables["prefill_attention"].iloc[0], tables["decode_attention"].iloc[0]
    assert (chunk.length, chunk.prefix, chunk.heads, chunk.kv_heads, chunk.seconds) == (
        128,
        256,
        16,
        2,
        30e-6,
    )
    assert (step.batch, step.length, step.seconds) == (9, 512, 40e-6)


def test_pure_rows_of_mixed_batches(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"prefill_chunk": p, "kv_prefill": kp, "n_decode": d, "kv_decode": kd, "time_us": 7.0}
        for p, kp, d, kd in ((512, 256, 0, 0), (0, 0, 8, 1024), (512, 0, 8, 1024))
    ]
    tables = llmservingsim.mixed_attention(write(tmp_path / "m.csv", rows), model("llama3.1-8b"), 1, "l40s")
    (chunk,) = tables["prefill_attention"].itertuples()
    (step,) = tables["decode_attention"].itertuples()
    assert (chunk.length, chunk.prefix, step.batch, step.length) == (512, 256, 8, 1024)
    assert step.seconds == pytest.approx(7e-6)


def test_fused_layers(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"layer": name, "tokens": 4, "time_us": 30.0} for name in ("qkv_proj", "gate_up_proj", "layernorm")
    ]
    tables = llmservingsim.dense(write(tmp_path / "d.csv", rows), model("llama3.1-8b"), 1, "l40s")
    gemm = tables["gemm"]
    assert set(zip(gemm.n, gemm.k, strict=True)) == {(6144, 4096), (28672, 4096)}


def test_vidur_by_hand(tmp_path: Path) -> None:
    layers = (
        "attn_pre_proj",
        "attn_post_proj",
        "mlp_up_proj",
        "mlp_down_proj",
        "input_layernorm",
        "attn_rope",
        "mlp_act",
    )
    times = {f"time_stats.{name}.median": 0.5 for name in layers}
    sizes = {"n_head": 64, "n_kv_head": 8, "n_embd": 8192, "n_expanded_embd": 28672, "use_gated_mlp": True}
    rows: list[dict[str, object]] = [{**times, **sizes, "num_tokens": 32, "num_tensor_parallel_workers": 8}]
    tables = vidur.mlp(write(tmp_path / "v.csv", rows), "h100-sxm")
    gemm = tables["gemm"]
    shapes = {(8192, 1024), (8192, 3584), (1280, 8192), (7168, 8192)}
    assert set(zip(gemm.n, gemm.k, strict=True)) == shapes
    assert set(gemm.seconds) == {0.5e-3}
    rows = [{"time_stats.all_reduce.median": 0.1, "num_workers": 4, "size": 4096, "collective": "all_reduce"}]
    (row,) = vidur.all_reduce(write(tmp_path / "r.csv", rows), "h100-sxm").itertuples()
    assert (row.gpus, row.bytes, row.seconds) == (4, 4096, 1e-4)


def gemm_rows(seconds: list[float]) -> pd.DataFrame:
    shape = {"gpu": "l40s", "engine": "own", "engine_version": "1", "source": "s", "dtype": "bf16"}
    return pd.DataFrame([{**shape, "m": 1, "n": 2, "k": 3, "seconds": each} for each in seconds])


def test_measurements_there_and_back(tmp_path: Path) -> None:
    measurements.write({"gemm": gemm_rows([1e-6]).assign(clock_mhz=1980)}, tmp_path)
    (table,) = measurements.read(tmp_path).values()
    assert table.seconds.tolist() == [1e-6]
    assert table.source.tolist() == ["gemm.parquet"]


def test_a_shape_counts_once() -> None:
    assert tidy(gemm_rows([1e-6, 9e-6, 2e-6]), "gemm").seconds.tolist() == [2e-6]


def test_what_is_not_a_time_is_refused() -> None:
    for wrong in (0.0, -1e-6, float("nan"), float("inf")):
        with pytest.raises(SourceError, match="positive"):
            tidy(gemm_rows([1e-6, wrong]), "gemm")
    with pytest.raises(SourceError, match="columns k are missing"):
        tidy(gemm_rows([1e-6]).drop(columns="k"), "gemm")
