"""The memory sheet: a sum, and what vLLM logs for the same deployment."""

import json
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim.cost.gpu import Gpu
from servesim.cost.memory import GIB, MemorySheet, activation_bytes, default_runtime_bytes, memory_sheet
from servesim.cost.model import Model
from tests.cost.shipped import gpu, model, replicas


def sheet(a_model: Model, a_gpu: Gpu, size: int = 1, kv: str = "auto", **changes: object) -> MemorySheet:
    """Return a memory sheet with vLLM's defaults."""
    knobs: dict[str, object] = {
        "gpu_memory_utilization": 0.9,
        "block_size": 16,
        "max_num_seqs": 256,
        "max_num_batched_tokens": 8192,
    }
    return memory_sheet(a_model, a_gpu, size, kv_cache_dtype=kv, **(knobs | changes))  # type: ignore[arg-type]


@given(replica=replicas(), utilization=st.floats(0.01, 1), block_size=st.sampled_from([1, 16, 64]))
def test_the_sheet_adds_up(replica: tuple[Model, Gpu, int, str], utilization: float, block_size: int) -> None:
    result = sheet(*replica, gpu_memory_utilization=utilization, block_size=block_size)
    *terms, (label, total) = result.lines()
    assert label == "KV cache"
    assert sum(size for _, size in terms) == total == result.kv_bytes
    block = block_size * result.kv_bytes_per_token
    assert result.blocks * block <= max(total, 0)
    assert total < (result.blocks + 1) * block
    assert result.fits == (result.blocks > 0)
    assert result.kv_tokens == result.blocks * block_size


@given(replica=replicas(), factor=st.floats(1, 3), more=st.integers(0, 4096))
def test_blocks_grow_with_memory_and_shrink_with_what_else_is_in_it(
    replica: tuple[Model, Gpu, int, str], factor: float, more: int
) -> None:
    a_model, a_gpu, size, kv = replica
    blocks = sheet(*replica).blocks
    larger_gpu = gpu(a_gpu.name, memory_bytes=round(a_gpu.memory_bytes * factor))
    larger_model = model(a_model.name, weights_dtype="bf16")
    assert sheet(a_model, larger_gpu, size, kv).blocks >= blocks
    assert sheet(*replica, gpu_memory_utilization=0.9 / factor).blocks <= blocks
    assert sheet(larger_model, a_gpu, size, kv).blocks <= blocks
    assert sheet(*replica, max_num_seqs=256 + more).blocks <= blocks
    assert sheet(*replica, max_num_batched_tokens=8192 + more).blocks <= blocks
    assert sheet(*replica, runtime_bytes=default_runtime_bytes(size) + more * 2**20).blocks <= blocks
    assert sheet(a_model, a_gpu, size, "fp8").blocks >= blocks >= sheet(a_model, a_gpu, size, "bf16").blocks


@pytest.mark.parametrize(("size", "kv_gib"), [(1, 58.11), (2, 63.76)])
def test_vllm_leaves_the_same_kv_for_llama_8b(size: int, kv_gib: float) -> None:
    """Llama-3.1-8B in BF16 under vLLM 0.19.0: H100, utilisation 0.95, 1,024 sequences, 8,192 tokens per step.

    Logged at TP 1: 79.19 x 0.95 = 75.23 GiB requested, weights 14.99, activations 1.89, outside PyTorch
    0.25; KV cache 58.11 GiB, 476,016 tokens. At TP 2: 7.51, 1.89 and 2.07, which leaves 63.76 GiB.
    (llm-d-incubation/llm-d-planner, accuracy/accuracy_report.md and accuracy/results/v0.19.0/logs)
    """
    large = {"gpu_memory_utilization": 0.95, "max_num_seqs": 1024, "max_num_batched_tokens": 8192}
    result = sheet(model("llama3.1-8b"), gpu("h100-sxm"), size, **large)
    assert result.kv_bytes / GIB == pytest.approx(kv_gib, rel=0.005)
    if size == 1:
        assert result.kv_tokens == pytest.approx(476_016, rel=0.005)


@pytest.mark.parametrize(
    ("hidden", "intermediate", "vocabulary", "logged_gib"),
    [
        (4096, 14336, 128256, 1.89),  # Llama-3.1-8B, at TP 1, 2 and 4 alike
        (8192, 28672, 128256, 1.96),  # Llama-3.3-70B FP8, TP 2
        (4096, 12288, 151936, 2.21),  # Qwen3-8B
        (5120, 17408, 151936, 2.23),  # Qwen3-14B
        (5120, 17920, 100352, 1.52),  # phi-4
        (3072, 24576, 256000, 3.63),  # gemma-7b
    ],
)
def test_vllm_logs_the_same_activation_peak(
    hidden: int, intermediate: int, vocabulary: int, logged_gib: float
) -> None:
    """Logged by vLLM 0.19.0 (0.18.0 for Qwen3-14B): 8,192 tokens per step, 1,024 sequences; source as above.

    Llama-3.1-8B: residual and hidden state 2 x 8192 x 4096 x 2 bytes = 0.125 GiB; logits 1024 x 128256
    x 14 bytes = 1.712 GiB, more than the MLP's 8192 x 3 x 14336 x 2 bytes = 0.656 GiB: 1.84 GiB.
    """
    shape = {"hidden_size": hidden, "intermediate_size": intermediate, "vocab_size": vocabulary}
    peak = activation_bytes(model("llama3.1-8b", **shape), 1, max_num_seqs=1024, max_num_batched_tokens=8192)
    assert peak / GIB == pytest.approx(logged_gib, rel=0.04)


def test_small_batches_peak_in_the_mlp_which_is_split() -> None:
    """With 16 rows sampling is small: 2 x 8192 x 4096 x 2 bytes + 8192 x 3 x 14336 x 2 bytes / TP."""
    llama = model("llama3.1-8b")
    for size in (1, 2):
        peak = activation_bytes(llama, size, max_num_seqs=16, max_num_batched_tokens=8192)
        assert peak == 2 * 8192 * 4096 * 2 + 8192 * 3 * 14336 * 2 / size


def test_no_more_rows_are_sampled_than_tokens_computed() -> None:
    llama = model("llama3.1-8b")
    few = activation_bytes(llama, 1, max_num_seqs=64, max_num_batched_tokens=64)
    assert activation_bytes(llama, 1, max_num_seqs=1024, max_num_batched_tokens=64) == few


def test_a_70b_in_bf16_just_fits_two_h100() -> None:
    """141.1 GB / 2 = 65.7 GiB of weights in 0.9 x 79.19 = 71.3 GiB: a little KV is left, on one GPU none."""
    llama = model("llama3.1-70b", weights_dtype="bf16")
    assert 0 < sheet(llama, gpu("h100-sxm"), 2).kv_tokens < 100_000
    alone = sheet(llama, gpu("h100-sxm"), 1)
    assert alone.kv_bytes < 0
    assert not alone.fits
    assert alone.blocks == 0


def test_an_override_replaces_the_blocks_but_does_not_make_a_model_fit() -> None:
    llama = model("llama3.1-70b", weights_dtype="bf16")
    usual = sheet(llama, gpu("h100-sxm"), 2)
    given_blocks = sheet(llama, gpu("h100-sxm"), 2, num_gpu_blocks_override=7)
    assert given_blocks.blocks == 7
    assert given_blocks.overridden
    assert not usual.overridden
    assert given_blocks.kv_bytes == usual.kv_bytes
    assert not sheet(llama, gpu("h100-sxm"), 1, num_gpu_blocks_override=7).fits


def test_the_sheet_as_plain_values() -> None:
    result = sheet(model("llama3.1-8b"), gpu("h100-sxm"))
    plain = json.loads(json.dumps(result.as_dict()))
    assert set(plain) == {field.name for field in fields(MemorySheet)} | {"fits"}
    assert plain["fits"] is True
    assert plain["blocks"] == result.blocks
