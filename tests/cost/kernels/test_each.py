"""What is particular to a form: figures by hand, and which sizes matter."""

import dataclasses

import numpy as np
import pytest

from servesim.cost.kernels.all_reduce import AllReduce
from servesim.cost.kernels.gemm import Gemm
from servesim.cost.kernels.moe import load
from servesim.cost.kernels.prefill_attention import PrefillAttention
from servesim.cost.kernels.smooth import better, overlapped
from tests.cost.kernels.forms import CASES, H100

SEARCHED, BY_ROWS = CASES["gemm, searched"].form, CASES["gemm, by rows"].form


def test_overlap_lies_between_the_larger_and_the_sum() -> None:
    assert overlapped(3.0, 4.0, 1) == pytest.approx(7)
    assert overlapped(3.0, 4.0, 2) == pytest.approx(5)
    assert overlapped(3.0, 4.0, 50) == pytest.approx(4)
    assert better(3.0, 4.0, 50) == pytest.approx(3)
    assert overlapped(0.0, 0.0, 2) == pytest.approx(0)


def test_a_large_product_runs_at_its_tile_rate() -> None:
    """8192 x 65536 x 65536 in BF16: 70 TFLOP at 84% of 989 TFLOP/s is 84.7 ms, and little else."""
    seconds = float(SEARCHED.seconds(H100, 8192, 65536, 65536))
    assert seconds == pytest.approx(2 * 8192 * 65536**2 / (0.84 * 989.4e12), rel=0.06)


def test_one_row_streams_the_weights() -> None:
    """4096 x 28672 in BF16: 235 MB at 85% of 3.35 TB/s is 82.5 us, plus 2.7 us of launch."""
    seconds = float(SEARCHED.seconds(H100, 1, 28672, 4096))
    assert seconds == pytest.approx(4096 * 28672 * 2 / (0.85 * 3.35e12) + 2.7e-6, rel=0.03)


def test_a_ragged_m_costs_only_where_asked_and_only_beyond_256_rows() -> None:
    for m, slower in ((256, False), (257, True), (260, False), (1023, True)):
        plain = BY_ROWS.seconds(H100, m, 16384, 8192)
        ragged = BY_ROWS.seconds(H100, m, 16384, 8192, ragged=True)
        assert (ragged > plain * 1.05) == slower
        assert ragged >= plain


def test_splitting_k_helps_where_multiprocessors_are_idle() -> None:
    """256 x 512 are 8 tiles of 128 x 128 for 132 multiprocessors."""
    unsplit = Gemm(**{**SEARCHED.__dict__, "split_depth": None})
    assert SEARCHED.seconds(H100, 256, 512, 32768) < unsplit.seconds(H100, 256, 512, 32768) / 1.5
    assert SEARCHED.seconds(H100, 8192, 8192, 8192) == unsplit.seconds(H100, 8192, 8192, 8192)


def test_fp8_weights_need_half_the_bytes_and_half_the_arithmetic() -> None:
    def scaled(dtype: str) -> Gemm:
        return Gemm(**{**SEARCHED.__dict__, "dtype": dtype, "launch_s": 0.0, "output_bandwidth": 1e6})

    for m in (16, 8192):
        bf16, fp8 = (float(scaled(dtype).seconds(H100, m, 8192, 8192)) for dtype in ("bf16", "fp8"))
        assert fp8 == pytest.approx(bf16 / 2, rel=0.01)


DECODE = CASES["decode attention"].form


def decode(batch: float, length: float, **options: object) -> float:
    return float(DECODE.seconds(H100, batch, 64, 8, 128, length, **options))


def test_kv_that_fits_the_cache_is_fast_only_in_a_benchmark() -> None:
    assert decode(4, 1024, resident=True) < decode(4, 1024)
    assert decode(256, 8192, resident=True) == pytest.approx(decode(256, 8192), rel=1e-3)


def test_decode_streams_kv_at_its_bandwidth() -> None:
    """256 x 8192 tokens of 4 KiB: 8.6 GB at 92% of 3.35 TB/s is 2.79 ms; waves add a little."""
    kv_bytes = 256 * 8192 * 2 * 8 * 128 * 2
    assert decode(256, 8192) == pytest.approx(kv_bytes / (0.92 * 3.35e12), rel=0.06)


def test_a_window_bounds_what_is_read() -> None:
    assert decode(64, 100_000, window=1024) == decode(64, 1024)
    assert decode(64, 512, window=1024) == decode(64, 512)


def test_the_shortest_length_still_costs_its_launch_and_waves() -> None:
    waves = 132 * 8 / 132 * 3.7e-6
    assert decode(132, 1) == pytest.approx(1.1e-5 + waves, rel=0.05)


PREFILL = CASES["prefill attention"].form


def prefill(length: int, prefix: int = 0, **options: object) -> float:
    return float(PREFILL.seconds(H100, 1, 64, 8, 128, length, prefix=prefix, **options))


def test_a_long_prompt_runs_at_its_block_rate() -> None:
    """131,072 tokens: 4 x 64 x 128 x L^2 / 2 FLOPs at 69% of the peak."""
    flops = 4 * 64 * 128 * 131_072**2 / 2
    assert prefill(131_072) == pytest.approx(flops / (0.69 * 989.4e12), rel=0.05)


def test_chunks_behind_their_prefix_compute_what_the_whole_prompt_does() -> None:
    """Scores of 16 chunks of 2,048 and of one of 32,768 tokens are the same but for the diagonals."""
    chunks = sum(prefill(2048, 2048 * i) for i in range(16))
    assert prefill(32_768) < chunks < 1.25 * prefill(32_768)


def test_a_prefix_of_full_blocks_costs_twice_a_causal_square() -> None:
    free = PrefillAttention(
        **{
            **PREFILL.__dict__,
            "launch_s": 0,
            "tile_s": 0,
            "token_s": 0,
            "bandwidth": 1e6,
            "kv_bandwidth": 1e6,
        }
    )
    square, full = (float(free.seconds(H100, 8, 64, 8, 128, 8192, prefix=p)) for p in (0, 8192))
    assert full == pytest.approx(3 * square, rel=0.02)


def test_heads_that_are_packed_share_tiles() -> None:
    """16 tokens of 8 heads fill a tile of 128: one instead of 8, but for packing it when there are more."""

    def tiles(packing: str, tokens: int) -> float:
        form = dataclasses.replace(
            PREFILL, packing=packing, chain_s=0, overlap=1, bandwidth=1e6, kv_bandwidth=1e6
        )
        alone = dataclasses.replace(form, launch_s=0, token_s=0, short_tile=1)
        block_s = 4 * 128**3 * 132 / (form.block_rate * 989.4e12)
        return float(alone.seconds(H100, 1000, 64, 8, 128, tokens)) * 132 / (1000 * (block_s + form.tile_s))

    assert [round(tiles(each, 16)) for each in ("always", "single", "never")] == [8, 64, 64]
    assert [round(tiles(each, 1)) for each in ("always", "single", "never")] == [8, 8, 64]
    assert [round(tiles(each, 128)) for each in ("always", "single", "never")] == [64, 64, 64]


def test_tiles_are_short_up_to_64_queries() -> None:
    """Of 8 heads packed, up to 8 tokens; of one, up to 64."""
    for form, most in ((CASES["prefill attention, packed"].form, 8), (PREFILL, 64)):
        bare = dataclasses.replace(form, launch_s=0, token_s=0, bandwidth=1e6, kv_bandwidth=1e6)
        at_most, beyond = (float(bare.seconds(H100, 1, 64, 8, 128, tokens)) for tokens in (most, most + 1))
        assert at_most / beyond == pytest.approx(form.short_tile, rel=0.01)


def test_a_window_makes_prefill_linear() -> None:
    assert prefill(100_000, window=1024) < prefill(100_000) / 20
    assert prefill(1000, window=4096) == prefill(1000)
    slope = prefill(200_000, window=1024) / prefill(100_000, window=1024)
    assert slope == pytest.approx(2, rel=0.05)


def test_all_reduce_changes_ways_as_messages_grow() -> None:
    form = AllReduce(8, 5e-6, 0.08, 10e-6, 0.46)
    assert float(form.seconds(H100, 1024)) == pytest.approx(5e-6, rel=0.02)
    assert float(form.seconds(H100, 1e9)) == pytest.approx(10e-6 + 1e9 / (0.46 * 450e9), rel=0.01)


def test_load_of_experts() -> None:
    """One token each: 1 - 1/e of the experts are hit. 65 tokens pad to 128. None: none."""
    hit, padded = load(np.array([[1.0, 1.0], [65.0, 65.0], [0.0, 0.0]]))
    assert hit == pytest.approx([2 * (1 - np.exp(-1)), 2, 0])
    assert padded.tolist() == [128, 256, 0]
