"""Laws of the fitted step times, and what they are made of."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim.cost.fitted import FittedStepTime
from servesim.cost.gpu import Gpu
from servesim.cost.model import Model
from servesim.cost.step_time import Operation
from tests.cost.fitted import H100, NO_OVERHEAD, OVERHEAD, decodes, fitted, profile
from tests.cost.shipped import gpu, model, replicas, step_time, steps
from tests.cost.test_roofline import arrays

Replica = tuple[Model, Gpu, int, str]
Step = tuple[int, int, list[tuple[int, int]]]
LLAMA = model("llama3.1-70b", weights_dtype="bf16")
QWEN = model("qwen3-32b")


@given(replica=replicas(), step=steps(), more=st.integers(1, 600), longer=st.integers(0, 50_000))
def test_time_does_not_decrease_in_tokens_or_context(
    replica: Replica, step: Step, more: int, longer: int
) -> None:
    times = fitted(*replica)
    sequences, context, chunks = step
    seconds = at_most(times.mixed(sequences, context, chunks))
    if sequences:
        assert times.mixed(sequences, context + longer, chunks) >= seconds
    assert times.mixed(sequences, context, [*chunks, (more, longer)]) >= seconds
    for place, (new, cached) in enumerate(chunks):
        for chunk in ((new + more, cached), (new, cached + longer)):
            assert times.mixed(sequences, context, [*chunks[:place], chunk, *chunks[place + 1 :]]) >= seconds


@given(replica=replicas(), batch=decodes(), more=st.integers(1, 600), chunks=st.booleans())
def test_time_does_not_decrease_in_sequences_of_the_mean_length(
    replica: Replica, batch: tuple[int, int], more: int, chunks: bool
) -> None:
    times = fitted(*replica)
    sequences, context = batch
    beside = [(500, 0)] if chunks else []
    further = context + more * -(-context // sequences)
    seconds = at_most(times.mixed(sequences, context, beside))
    assert times.mixed(sequences + more, further, beside) >= seconds


@given(replica=replicas(), step=steps(), factor=st.floats(1, 20))
@pytest.mark.parametrize(
    "figure", ["hbm_bytes_per_s", "bf16_flops_per_s", "fp8_flops_per_s", "nvlink_bytes_per_s"]
)
def test_time_does_not_increase_with_faster_hardware(
    figure: str, replica: Replica, step: Step, factor: float
) -> None:
    a_model, slow, size, kv = replica
    fast = replace(slow, **{figure: factor * (getattr(slow, figure) or 1e15)})
    if getattr(slow, figure) is not None:
        seconds = fitted(a_model, slow, size, kv).mixed(*step)
        assert at_most(fitted(a_model, fast, size, kv).mixed(*step)) <= seconds


@pytest.mark.parametrize(
    ("figure", "step"),
    [
        ("hbm_bytes_per_s", (1, 1000, [])),
        ("bf16_flops_per_s", (0, 0, [(4000, 0)])),
        ("nvlink_bytes_per_s", (0, 0, [(4000, 0)])),
    ],
)
def test_each_figure_of_the_hardware_matters(figure: str, step: Step) -> None:
    fast = gpu("h100-sxm", **{figure: 2 * getattr(H100, figure)})
    assert fitted(LLAMA, fast, 4).mixed(*step) < 0.99 * fitted(LLAMA, H100, 4).mixed(*step)


@given(replica=replicas(), batch=decodes())
def test_decode_and_mixed_agree(replica: Replica, batch: tuple[int, int]) -> None:
    """Exactly: a leap of decodes and the same steps one by one may not differ by rounding."""
    times = fitted(*replica)
    sequences, context = batch
    base, slope, limit = times.decode(sequences, context)
    assert base + slope * context == times.mixed(sequences, context, [])
    assert context <= limit
    assert slope >= 0


@given(replica=replicas(), batch=decodes())
def test_pieces_meet_at_their_ends(replica: Replica, batch: tuple[int, int]) -> None:
    """Up to its limit a piece goes on unchanged, and the next begins where it ends."""
    times = fitted(*replica)
    sequences, context = batch
    base, slope, limit = times.decode(sequences, context)
    if limit == inf:
        return
    assert times.decode(sequences, int(limit)) == (base, slope, limit)
    further_base, further_slope, further_limit = times.decode(sequences, int(limit) + 1)
    assert further_limit > limit
    assert further_base + further_slope * limit == pytest.approx(base + slope * limit, rel=1e-9)


@given(replica=replicas(), batch=decodes())
def test_pieces_are_within_half_a_percent_of_the_form(replica: Replica, batch: tuple[int, int]) -> None:
    """Of the attention alone, which is less than the step."""
    times = fitted(*replica, overhead=NO_OVERHEAD)
    sequences, context = batch
    exact_s = attention_s(times, *replica, sequences, context / sequences)
    (operation,) = [one for one in times.breakdown(sequences, context, []) if one.name == "decode_attention"]
    assert operation.seconds == pytest.approx(exact_s, rel=0.005)


def attention_s(
    times: FittedStepTime, a_model: Model, a_gpu: Gpu, gpus: int, kv: str, sequences: int, length: float
) -> float:
    """Return what the form says of decode attention in all layers."""
    heads = a_model.num_attention_heads // gpus
    kv_heads = a_model.kv_heads_per_gpu(gpus)
    seconds = times.kernels.decode.seconds(a_gpu, sequences, heads, kv_heads, a_model.head_dim, length)
    return a_model.num_hidden_layers * float(seconds)


@given(replica=replicas(), new=st.integers(1, 20_000), cached=st.integers(0, 50_000))
def test_one_chunk_costs_what_the_form_says(replica: Replica, new: int, cached: int) -> None:
    a_model, a_gpu, gpus, _ = replica
    times = fitted(*replica, overhead=NO_OVERHEAD)
    heads, kv_heads = a_model.num_attention_heads // gpus, a_model.kv_heads_per_gpu(gpus)
    form = times.kernels.prefill
    seconds = form.seconds(a_gpu, 1, heads, kv_heads, a_model.head_dim, new, prefix=cached)
    (operation,) = [one for one in times.breakdown(0, 0, [(new, cached)]) if one.name == "prefill_attention"]
    assert operation.seconds == pytest.approx(a_model.num_hidden_layers * float(seconds), rel=1e-9)


def test_chunks_share_the_gpu() -> None:
    """Eight short prompts in one call take less attention than one after the other, but more than one."""
    times = fitted(QWEN, tensor_parallel_size=8, tokens=8192)

    def attention(chunks: list[tuple[int, int]]) -> float:
        return {one.name: one.seconds for one in times.breakdown(0, 0, chunks)}["prefill_attention"]

    one = attention([(1024, 0)])
    assert 1.2 * one < attention([(1024, 0)] * 8) < 0.6 * 8 * one


@given(replica=replicas(), tokens=st.integers(513, 3000), rows=st.integers(65, 3000))
def test_tables_grow_when_a_step_is_beyond_them(replica: Replica, tokens: int, rows: int) -> None:
    long, short = (replica_times(replica, seqs=64, tokens=length).mixed for length in (8192, 64))
    for step in [(0, 0, [(tokens, 17)]), (rows, rows * 10, []), (rows, rows, [(tokens, 0)])]:
        assert short(*step) == pytest.approx(long(*step), rel=1e-12)


def replica_times(replica: Replica, seqs: int, tokens: int) -> FittedStepTime:
    """Return step times whose CUDA graphs do not depend on ``tokens``."""
    return fitted(*replica, seqs=min(seqs, 32), tokens=tokens)


@given(replica=replicas(), step=steps())
def test_the_breakdown_sums_to_the_step(replica: Replica, step: Step) -> None:
    times = fitted(*replica)
    operations = times.breakdown(*step)
    assert sum(one.seconds for one in operations) == pytest.approx(times.mixed(*step), rel=1e-12)
    assert all(one.seconds > 0 for one in operations)
    names = [one.name for one in operations]
    assert len(set(names)) == len(names)
    assert ("all_reduce" in names) == (replica[2] > 1)
    assert ("quantise" in names) == (
        replica[0].weights_dtype == "fp8" and replica[1].fp8_flops_per_s is not None
    )


@given(replica=replicas(), step=steps())
def test_no_operation_is_below_its_floor(replica: Replica, step: Step) -> None:
    """max(FLOPs / peak, bytes / bandwidth) for kernels, message / link for collectives."""
    a_model, a_gpu, size, _ = replica
    for one in fitted(*replica, overhead=NO_OVERHEAD).breakdown(*step):
        if one.name == "all_reduce":
            floor = one.bytes / size / (2 - 2 / size) / a_gpu.nvlink_bytes_per_s
        else:
            dense = one.name in ("qkv", "o", "gate_up", "down")
            peak = a_gpu.peak_flops(a_model.weights_dtype if dense else "bf16")
            floor = max(one.flops / peak, one.bytes / a_gpu.hbm_bytes_per_s) / size
        assert one.seconds >= floor * (1 - 1e-9)


@given(replica=replicas(), step=steps())
def test_work_is_the_same_at_either_fidelity(replica: Replica, step: Step) -> None:
    told = arrays([step])
    for own, other in zip(fitted(*replica).work(**told), step_time(*replica).work(**told), strict=True):
        assert own == pytest.approx(other, rel=1e-15)
    kernels = [one for one in fitted(*replica).breakdown(*step) if one.name != "all_reduce"]
    flops, hbm_bytes = fitted(*replica).work(**told)
    assert sum(one.flops for one in kernels) == pytest.approx(flops[0], rel=1e-12)
    assert sum(one.bytes for one in kernels) == pytest.approx(hbm_bytes[0], rel=1e-12)


@given(step=steps())
def test_the_engine_adds_its_terms(step: Step) -> None:
    """0.8 ms a step, 50 us a sequence, and a fifth of what prefill tokens take alone."""
    sequences, _, chunks = step
    alone, with_engine = fitted(QWEN, overhead=NO_OVERHEAD), fitted(QWEN, overhead=OVERHEAD)
    added = with_engine.mixed(*step) - alone.mixed(*step)
    host = 8e-4 + 5e-5 * (sequences + len(chunks))
    if not chunks:
        assert added == pytest.approx(host, rel=1e-9)
    else:
        assert host <= added <= host + 0.2 * alone.mixed(0, 0, chunks)
    assert fitted(QWEN, overhead=None).mixed(*step) == alone.mixed(*step)


def test_the_factor_holds_for_prefill_tokens() -> None:
    """A prompt of 8,192 tokens is nearly all prefill: with a factor of 1.2 its kernels take 1.2 times."""
    alone, with_engine = fitted(QWEN, overhead=NO_OVERHEAD), fitted(QWEN, overhead=OVERHEAD)
    step = (0, 0, [(8192, 0)])
    assert with_engine.mixed(*step) == pytest.approx(8.5e-4 + 1.2 * alone.mixed(*step), rel=0.02)


def test_products_are_padded_to_multiples_of_four_rows() -> None:
    times = fitted(QWEN, seqs=1)  # CUDA graphs of 1 and 2 tokens
    assert times.decode(1, 1)[0] < times.decode(3, 3)[0]
    seconds = [{one.name: one.seconds for one in times.breakdown(b, b, [])}["qkv"] for b in (1, 3, 4, 5)]
    assert seconds[0] == seconds[1] == seconds[2] < seconds[3]


@given(batch=decodes())
def test_arrays_of_pieces_and_single_ones_are_the_same(batch: tuple[int, int]) -> None:
    """A number of sequences costs the same whether it was tabulated in advance or on demand."""
    sequences, context = batch
    wide = fitted(QWEN, seqs=1100, tokens=64).decode(sequences, context)
    assert fitted(QWEN, seqs=1100, tokens=64).decode(sequences, context) == wide
    assert np.isfinite(wide[:2]).all()


# ---- the textbook: what an H100 must do, and what it cannot


def test_one_user_of_a_70b_sees_fewer_tokens_than_the_bandwidth_allows() -> None:
    """23.9 tokens/s at the datasheet's bandwidth; kernels reach 80 to 95% of it."""
    seconds = fitted(LLAMA, overhead=NO_OVERHEAD).mixed(1, 1000, [])
    assert 0.75 < (1 / seconds) / 23.9 < 0.95


def test_prefill_reaches_most_of_the_peak() -> None:
    """2,000 tokens take 0.277 s at the peak; measured GEMMs run at 60 to 80% of it."""
    assert 1.2 < fitted(LLAMA, overhead=NO_OVERHEAD).mixed(0, 0, [(2000, 0)]) / 0.277 < 1.8


def test_a_batch_of_decodes_costs_little_more_than_one() -> None:
    times = fitted(LLAMA)
    assert 64 / times.mixed(64, 64 * 100, []) > 45 / times.mixed(1, 100, [])


def at_most(seconds: float) -> float:
    """Return a time less its rounding."""
    return seconds * (1 - 1e-12)


def test_an_all_reduce_is_of_the_link_where_its_time_grows_with_its_bytes() -> None:
    """Also over links that reach a fiftieth of their datasheet, as without peer-to-peer over PCIe."""
    slow = {"gpus": 4, "quick_s": 9e-6, "quick_rate": 0.02, "steady_s": 12e-6, "steady_rate": 0.02}
    times = profile(all_reduce={"gpus_4": slow}).step_time(
        QWEN, H100, 4, "auto", max_num_seqs=64, max_num_batched_tokens=512
    )

    def told(tokens: int) -> Operation:
        found = times.breakdown(0, 0, [(tokens, 0)])
        return next(one for one in found if one.name == "all_reduce")

    bounds = [told(tokens).bound for tokens in (1, 2, 4, 512, 1024, 16384)]
    assert bounds == ["latency"] * 3 + ["link"] * 3
    assert told(16384).seconds == pytest.approx(16 * told(1024).seconds, rel=0.1)
