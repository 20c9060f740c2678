"""Figures of the textbook: a 70-billion-parameter model on one H100 SXM (3.35 TB/s, 989 TFLOP/s).

Memory is left out of these: whether the weights fit is the memory sheet's question.
"""

import pytest

from tests.cost.shipped import gpu, model, step_time

LLAMA = model("llama3.1-70b", weights_dtype="bf16")
H100 = gpu("h100-sxm")
TIMES = step_time(LLAMA, H100, tokens=8192)


def total(sequences: int, context: int, chunks: list[tuple[int, int]]) -> tuple[float, float, float]:
    """Return FLOPs, bytes and seconds of a step."""
    operations = TIMES.breakdown(sequences, context, chunks)
    return (
        sum(one.flops for one in operations),
        sum(one.bytes for one in operations),
        sum(one.seconds for one in operations),
    )


def test_a_decode_step_streams_all_weights() -> None:
    """70e9 parameters x 2 bytes = 140 GB; here 70.55e9 less the 1.05e9 of the embedding: 139.0 GB."""
    _, streamed, _ = total(1, 1, [])
    assert streamed == pytest.approx(140e9, rel=0.01)


def test_one_user_sees_24_tokens_per_second() -> None:
    """140 GB / 3.35 TB/s = 41.8 ms per token, 23.9 tokens/s."""
    assert 1 / TIMES.mixed(1, 1000, []) == pytest.approx(24, rel=0.01)


def test_one_user_leaves_the_tensor_cores_idle() -> None:
    """2 x 70e9 FLOPs per token x 23.9 tokens/s = 3.35 TFLOP/s, of 989 TFLOP/s: 0.34%."""
    flops, _, seconds = total(1, 1, [])
    assert flops / seconds / H100.bf16_flops_per_s == pytest.approx(0.0034, rel=0.01)


def test_four_bit_weights_take_35_gb() -> None:
    """70e9 x 0.5 bytes = 35 GB: the 68.45e9 linear weights with their scales take 35.6 GB.

    Embedding and LM head stay in BF16: 2 x 128256 x 8192 x 2 bytes = 4.2 GB beside them.
    """
    int4 = model("llama3.1-70b", weights_dtype="int4")
    assert int4.linear_bytes() == pytest.approx(35.6e9, rel=0.002)
    assert int4.linear_bytes() == pytest.approx(35e9, rel=0.02)
    assert int4.weight_bytes() - int4.linear_bytes() == pytest.approx(4.2e9, rel=0.002)


def test_prefill_runs_near_the_compute_roofline() -> None:
    """2,000 tokens: 2 x 68.45e9 x 2000 = 274 TFLOP in the layers, 277 ms at 989 TFLOP/s.

    Streaming the weights takes 41 ms of that time. Only the LM head, one row, is bound by memory: 0.6 ms.
    """
    flops, _, seconds = total(0, 0, [(2000, 0)])
    assert seconds == pytest.approx(0.28, rel=0.02)
    assert flops / seconds / H100.bf16_flops_per_s > 0.99


def test_arithmetic_intensity_drops_by_three_orders_of_magnitude() -> None:
    """Prefill of 2,000 tokens does 2 FLOPs per weight and token, 2,000 FLOPs per byte; a decode step 1."""
    prefill_flops, prefill_bytes, _ = total(0, 0, [(2000, 0)])
    decode_flops, decode_bytes, _ = total(1, 2000, [])
    assert prefill_flops / prefill_bytes == pytest.approx(2000, rel=0.02)
    assert decode_flops / decode_bytes == pytest.approx(1, rel=0.05)
    assert (prefill_flops / prefill_bytes) / (decode_flops / decode_bytes) > 1000


def test_kv_outweighs_the_weights() -> None:
    """KV of a token: 2 x 80 layers x 8 heads x 128 x 2 bytes = 327,680 bytes.

    140e9 / 327,680 = 427,246 tokens outweigh BF16 weights; 35e9 / 327,680 = 106,811 the 4-bit ones, less
    than one conversation of 128k.
    """
    per_token = LLAMA.kv_bytes_per_token("bf16")
    int4 = model("llama3.1-70b", weights_dtype="int4")
    assert per_token == 327_680
    assert LLAMA.weight_bytes() / per_token == pytest.approx(427_000, rel=0.01)
    assert int4.linear_bytes() / per_token == pytest.approx(107_000, rel=0.02)
    assert 131_072 * per_token > int4.weight_bytes()


def test_a_batch_of_decodes_costs_little_more_than_one() -> None:
    """The weights are streamed once for all: 64 users get 60 times the tokens of one."""
    assert 64 / TIMES.mixed(64, 64 * 100, []) > 60 / TIMES.mixed(1, 100, [])
