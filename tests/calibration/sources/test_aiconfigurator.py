"""What is peculiar to the tables of aiconfigurator-core is undone: on small made tables, then on its own."""

from pathlib import Path

import pytest

from calibration.sources import aiconfigurator, wheel
from calibration.sources.tidy import SHAPES, SourceError
from tests.calibration.packages import installed, made


def gemm_row(dtype: str, m: int, milliseconds: float) -> dict[str, object]:
    return {"gemm_dtype": dtype, "m": m, "n": 512, "k": 1024, "latency": milliseconds}


def quantise_row(m: int, milliseconds: float) -> dict[str, object]:
    return {"quant_dtype": "fp8", "m": m, "k": 1024, "latency": milliseconds}


def test_milliseconds_become_seconds(tmp_path: Path) -> None:
    package = made(tmp_path, gemm__vllm__v0240__gemm_perf=[gemm_row("bfloat16", 8, 0.25)])
    table = aiconfigurator.gemm(package, "h100-sxm", "vllm")
    assert table is not None
    row = table.iloc[0]
    assert row.seconds == 0.25e-3
    assert (row.gpu, row.engine, row.engine_version, row["dtype"]) == ("h100-sxm", "vllm", "0.24.0", "bf16")
    assert row.source == "h100_sxm/gemm/vllm/0.24.0/gemm_perf.parquet"


def test_fp8_products_are_timed_without_the_quantisation_inside(tmp_path: Path) -> None:
    """0.10 ms less 0.02 and 0.01; nothing is left at m = 16, and m = 32 was never quantised: both go."""
    fp8 = [gemm_row("fp8", 8, 0.10), gemm_row("fp8", 16, 0.02), gemm_row("fp8", 32, 0.10)]
    package = made(
        tmp_path,
        gemm__vllm__v0240__gemm_perf=[*fp8, gemm_row("bfloat16", 8, 0.10)],
        quantize__vllm__v0240__scale_matrix_perf=[quantise_row(8, 0.02), quantise_row(16, 0.02)],
        quantize__vllm__v0240__computescale_perf=[quantise_row(8, 0.01), quantise_row(16, 0.01)],
    )
    table = aiconfigurator.gemm(package, "h100-sxm", "vllm")
    assert table is not None
    assert dict(zip(zip(table.dtype, table.m, strict=True), table.seconds, strict=True)) == {
        ("bf16", 8): 0.10e-3,
        ("fp8", 8): pytest.approx(0.07e-3),
    }


def test_block_scaled_rows_that_show_the_host_are_dropped(tmp_path: Path) -> None:
    rows = [gemm_row("fp8_block", m, ms) for m, ms in ((1, 0.055), (64, 0.105), (128, 0.111), (256, 0.3))]
    package = made(tmp_path, gemm__vllm__v0240__gemm_perf=rows)
    table = aiconfigurator.gemm(package, "h100-sxm", "vllm")
    assert table is not None
    assert table.m.tolist() == [128, 256]


def test_messages_are_counted_in_elements(tmp_path: Path) -> None:
    rows = [
        {
            "kernel_source": f"vLLM_custom_{mode}",
            "allreduce_dtype": "bfloat16",
            "num_gpus": 8,
            "message_size": 1024,
            "latency": ms,
        }
        for mode, ms in (("graph", 0.005), ("eager", 0.025))
    ]
    package = made(tmp_path, comm__vllm__v0240__custom_allreduce_perf=rows)
    table = aiconfigurator.all_reduce(package, "h100-sxm", "vllm")
    assert table is not None
    assert table.bytes.tolist() == [2048, 2048]
    assert dict(zip(table["mode"], table.seconds, strict=True)) == {"graph": 5e-6, "eager": 25e-6}


def test_repeated_rows_of_nccl_are_one(tmp_path: Path) -> None:
    shape = {"op_name": "all_reduce", "num_gpus": 2, "message_size": 1024}
    rows = [{**shape, "nccl_dtype": "half", "latency": ms} for ms in (0.010, 0.012, 0.012)]
    rows += [{**shape, "nccl_dtype": "int8", "latency": 0.009}]
    rows += [{**shape, "op_name": "all_gather", "nccl_dtype": "half", "latency": 1.0}]
    package = made(tmp_path, comm__nccl__v0240__nccl_perf=rows)
    table = aiconfigurator.nccl(package, "h100-sxm", "0.24.0")
    assert table is not None
    assert dict(zip(table.bytes, table.seconds, strict=True)) == {1024: 9e-6, 2048: 12e-6}


def attention_row(**columns: object) -> dict[str, object]:
    return {
        "batch_size": 4,
        "num_heads": 8,
        "num_key_value_heads": 2,
        "head_dim": 128,
        "attn_dtype": "bfloat16",
        "kv_cache_dtype": "fp8",
        "latency": 0.5,
        **columns,
    }


def test_a_decode_reads_its_past_and_itself(tmp_path: Path) -> None:
    row = attention_row(isl=1, step=1023, window_size=128)
    package = made(tmp_path, attention__vllm__v0240__generation_attention_perf=[row])
    table = aiconfigurator.decode_attention(package, "h100-sxm", "vllm")
    assert table is not None
    row = table.iloc[0]
    assert (row.length, row.window, row.kv_dtype) == (1024, 128, "fp8")


def test_the_step_of_a_prompt_is_its_prefix_and_old_tables_have_no_window(tmp_path: Path) -> None:
    row = attention_row(isl=512, step=256)
    package = made(tmp_path, attention__vllm__v0240__context_attention_perf=[row])
    table = aiconfigurator.prefill_attention(package, "h100-sxm", "vllm")
    assert table is not None
    row = table.iloc[0]
    assert (row.length, row.prefix, row.window, row["dtype"]) == (512, 256, 0, "bf16")


def test_experts_without_a_gate_are_known_by_shape_or_kernel(tmp_path: Path) -> None:
    def row(hidden: int, inter: int, experts: int, top_k: int, kernel: str) -> dict[str, object]:
        return {
            "kernel_source": kernel,
            "moe_dtype": "bfloat16",
            "num_tokens": 1,
            "hidden_size": hidden,
            "inter_size": inter,
            "num_experts": experts,
            "topk": top_k,
            "moe_tp_size": 1,
            "moe_ep_size": 1,
            "distribution": "balanced",
            "latency": 1.0,
        }

    rows = [row(2688, 1856, 128, 6, "triton"), row(4096, 1536, 128, 8, "triton"), row(1, 1, 2, 1, "nongated")]
    package = made(tmp_path, moe__vllm__v0240__moe_perf=rows)
    table = aiconfigurator.moe(package, "h100-sxm", "vllm")
    assert table is not None
    assert dict(zip(table.hidden, table.gated, strict=True)) == {1: False, 2688: False, 4096: True}


def test_a_chain_of_operations_is_no_kernel_so_anothers_stands_for_it(tmp_path: Path) -> None:
    package = made(
        tmp_path,
        quantize__vllm__v0240__scale_matrix_perf=[quantise_row(8, 0.002)],
        quantize__vllm__v0240__computescale_perf=[quantise_row(8, 0.001)],
        quantize__sglang__v0514__scale_matrix_perf=[quantise_row(8, 0.008)],
        quantize__sglang__v0514__computescale_perf=[quantise_row(8, 0.0)],
    )
    table = aiconfigurator.quantise(package, "h100-sxm", "sglang")
    assert table is not None
    assert table[["engine", "mode", "seconds"]].values.tolist() == [["vllm", "static", 0.002e-3]]


@pytest.mark.parametrize("gpu", ["h100-sxm", "h200-sxm", "b200-sxm", "l40s", "rtx-pro-6000"])
def test_sglangs_own_rows_are_of_several_passes(gpu: str) -> None:
    """Long rows take more than the reading and writing of an intermediate FP32 tensor beside BF16 and FP8."""
    package = installed()
    rows = aiconfigurator._read(package, gpu, "quantize", "sglang", "scale_matrix_perf")
    one = aiconfigurator.quantise(package, gpu, "vllm")
    assert rows is not None
    assert one is not None
    shape = {"m": 32768, "k": 16384}
    chain, kernel = (
        float(table.loc[(table.m == shape["m"]) & (table.k == shape["k"]), "seconds"].iloc[0])
        for table in (rows, one[one["mode"] == "static"])
    )
    assert chain > (3 + 4 + 4) / 3 * kernel


def test_the_newest_version_that_is_not_too_new(tmp_path: Path) -> None:
    for version in ("0.9.0", "0.14.0", "0.22.0"):
        folder = tmp_path / "h100_sxm" / "comm" / "vllm" / version
        folder.mkdir(parents=True)
        (folder / "t.parquet").touch()
    package = wheel.Wheel(tmp_path, "0")
    chosen = package.path("h100-sxm", "comm", "vllm", "0.19.0", "t")
    assert chosen is not None
    assert chosen.parent.name == "0.14.0"
    assert package.path("h100-sxm", "comm", "vllm", "0.1.0", "t") is None


def test_a_release_candidate_comes_before_its_release() -> None:
    order = sorted(["1.3.0", "1.3.0rc20", "1.3.0rc5", "1.2.9", "1.3.0.post1"], key=wheel._order)
    assert order == ["1.2.9", "1.3.0rc5", "1.3.0rc20", "1.3.0", "1.3.0.post1"]


def test_without_the_package_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheel, "PACKAGE", "a-package-that-nobody-has-installed")
    with pytest.raises(SourceError, match=r"pip install -e '\.\[calibration\]'"):
        wheel.Wheel.installed()


def test_the_tables_of_the_h100() -> None:
    package = installed()
    readers = {
        "gemm": aiconfigurator.gemm,
        "quantise": aiconfigurator.quantise,
        "decode_attention": aiconfigurator.decode_attention,
        "prefill_attention": aiconfigurator.prefill_attention,
        "all_reduce": aiconfigurator.all_reduce,
        "moe": aiconfigurator.moe,
    }
    for operation, reader in readers.items():
        table = reader(package, "h100-sxm", "vllm")
        assert table is not None
        assert len(table) > 100
        assert not table.duplicated([*SHAPES[operation], "engine_version"]).any()
    reduce = aiconfigurator.all_reduce(package, "h100-sxm", "vllm")
    assert reduce is not None
    largest = reduce[(reduce["mode"] == "graph") & (reduce.gpus == 8)].iloc[-1]
    bus = 2 * 7 / 8 * largest.bytes / largest.seconds
    assert 300e9 < bus < 500e9  # near the link: sizes read as bytes would halve it
