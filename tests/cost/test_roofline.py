"""Laws of the roofline step times."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim.cost.gpu import Gpu
from servesim.cost.interconnect import all_reduce_sent_bytes
from servesim.cost.model import Model
from servesim.cost.step_time import GraphSizes
from tests.cost.shipped import gpu, model, replicas, step_time, steps

Replica = tuple[Model, Gpu, int, str]
Step = tuple[int, int, list[tuple[int, int]]]
SMALL = {"seqs": 64, "tokens": 512}


@given(replica=replicas(), step=steps(), more=st.integers(1, 600), longer=st.integers(0, 50_000))
def test_time_does_not_decrease_in_tokens_sequences_or_context(
    replica: Replica, step: Step, more: int, longer: int
) -> None:
    times = step_time(*replica)
    sequences, context, chunks = step
    seconds = times.mixed(sequences, context, chunks)
    assert times.mixed(sequences + more, context, chunks) >= seconds
    assert times.mixed(sequences, context + longer, chunks) >= seconds
    assert times.mixed(sequences, context, [*chunks, (more, longer)]) >= seconds
    for place, (new, cached) in enumerate(chunks):
        for chunk in ((new + more, cached), (new, cached + longer)):
            assert times.mixed(sequences, context, [*chunks[:place], chunk, *chunks[place + 1 :]]) >= seconds


@given(replica=replicas(), step=steps(), factor=st.floats(1, 20))
@pytest.mark.parametrize(
    "figures", [["hbm_bytes_per_s"], ["bf16_flops_per_s"], ["fp8_flops_per_s"], ["nvlink_bytes_per_s"]]
)
def test_time_does_not_increase_with_faster_hardware(
    figures: list[str], replica: Replica, step: Step, factor: float
) -> None:
    a_model, slow, size, kv = replica
    present = {name: getattr(slow, name) for name in figures if getattr(slow, name) is not None}
    fast = replace(slow, **{name: value * factor for name, value in present.items()})
    assert step_time(a_model, fast, size, kv).mixed(*step) <= step_time(a_model, slow, size, kv).mixed(*step)


@pytest.mark.parametrize(
    ("figure", "step"),
    [
        ("hbm_bytes_per_s", (1, 1000, [])),
        ("bf16_flops_per_s", (0, 0, [(4000, 0)])),
        ("fp8_flops_per_s", (0, 0, [(4000, 0)])),
        ("nvlink_bytes_per_s", (0, 0, [(4000, 0)])),
    ],
)
def test_each_figure_of_the_hardware_matters(figure: str, step: Step) -> None:
    slow = gpu("h100-sxm")
    fast = gpu("h100-sxm", **{figure: 2 * getattr(slow, figure)})
    llama = model("llama3.1-70b")
    assert step_time(llama, fast, 4).mixed(*step) < 0.999 * step_time(llama, slow, 4).mixed(*step)


@given(replica=replicas(), sequences=st.integers(1, 3000), context=st.integers(1, 10**7))
def test_decode_and_mixed_agree(replica: Replica, sequences: int, context: int) -> None:
    """Exactly: a leap of decodes and the same steps one by one may not differ by rounding."""
    times = step_time(*replica)
    base, slope, limit = times.decode(sequences, context)
    assert base + slope * context == times.mixed(sequences, context, [])
    assert limit == inf


@given(replica=replicas(), tokens=st.integers(513, 3000), rows=st.integers(1, 3000))
def test_the_tables_say_what_the_formula_says(replica: Replica, tokens: int, rows: int) -> None:
    """Steps inside a long table, and the same steps beyond a short one."""
    long = step_time(*replica, seqs=256, tokens=8192)
    short = step_time(*replica, seqs=256, tokens=512)
    chunks = [(tokens, 17)]
    assert short.mixed(0, 0, chunks) == pytest.approx(long.mixed(0, 0, chunks), rel=1e-12)
    assert short.decode(rows, rows)[0] == pytest.approx(long.decode(rows, rows)[0], rel=1e-12)


@given(replica=replicas(), step=steps())
def test_the_breakdown_sums_to_the_step(replica: Replica, step: Step) -> None:
    times = step_time(*replica)
    operations = times.breakdown(*step)
    assert sum(operation.seconds for operation in operations) == pytest.approx(times.mixed(*step), rel=1e-12)
    expected = ["qkv", "attention", "o", "gate_up", "down", *["all_reduce"] * (replica[2] > 1), "lm_head"]
    assert [operation.name for operation in operations] == expected


@given(replica=replicas(), step=steps())
def test_no_operation_is_below_its_floor(replica: Replica, step: Step) -> None:
    """max(FLOPs / peak, bytes / bandwidth) for kernels, bytes over the link for collectives."""
    a_model, a_gpu, size, _ = replica
    for operation in step_time(*replica).breakdown(*step):
        dense = operation.name in ("qkv", "o", "gate_up", "down")
        peak = a_gpu.peak_flops(a_model.weights_dtype if dense else "bf16")
        link = operation.name == "all_reduce"
        rate = a_gpu.nvlink_bytes_per_s if link else a_gpu.hbm_bytes_per_s
        floor = max(operation.flops / peak, operation.bytes / rate) / size
        assert operation.seconds >= floor * (1 - 1e-12)
        if not link:
            assert operation.seconds == pytest.approx(floor, rel=1e-12)
            compute = operation.flops / peak > operation.bytes / rate
            assert operation.bound == ("compute" if compute else "memory")


@given(replica=replicas(), step=steps())
def test_the_work_of_a_step_counted_from_the_model(replica: Replica, step: Step) -> None:
    """FLOPs and bytes from parameter counts, without looking at single layers.

    FLOPs: 2 per linear weight and padded token, 2 per weight of the head and row, 4 per pair and element
    of a query head. Bytes: each GPU reads its weights but the embedding and norms once, and the KV.
    """
    a_model, _, size, kv = replica
    sequences, context, chunks = step
    whole = a_model.num_hidden_layers * sum(linear.parameters for linear in a_model.linears(size)) * size
    tokens = GraphSizes(*SMALL.values()).padded(sequences + sum(new for new, _ in chunks))
    pairs = context + sum(sum(cached + i for i in range(1, new + 1)) for new, cached in chunks)
    read = context + sum(new + cached for new, cached in chunks)
    heads = a_model.num_hidden_layers * a_model.num_attention_heads * a_model.head_dim
    flops = 2 * whole * tokens + 2 * a_model.head_parameters * (sequences + len(chunks)) + 4 * heads * pairs
    per_gpu = a_model.linear_bytes(size) + 2 * a_model.head_parameters / size
    hbm = size * (per_gpu + read * a_model.kv_bytes_per_token(kv, size))  # type: ignore[arg-type]
    kernels = [one for one in step_time(*replica, **SMALL).breakdown(*step) if one.name != "all_reduce"]
    assert sum(one.flops for one in kernels) == pytest.approx(flops, rel=1e-12)
    assert sum(one.bytes for one in kernels) == pytest.approx(hbm, rel=1e-12)


@given(replica=replicas(), some=st.lists(steps(), min_size=1, max_size=4))
def test_work_agrees_with_the_breakdown(replica: Replica, some: list[Step]) -> None:
    times = step_time(*replica)
    flops, hbm_bytes = times.work(**arrays(some))
    for index, step in enumerate(some):
        kernels = [one for one in times.breakdown(*step) if one.name != "all_reduce"]
        assert flops[index] == pytest.approx(sum(one.flops for one in kernels), rel=1e-12)
        assert hbm_bytes[index] == pytest.approx(sum(one.bytes for one in kernels), rel=1e-12)


@given(
    replica=replicas(), sequences=st.integers(1, 700), first=st.integers(0, 10**6), count=st.integers(1, 50)
)
def test_the_work_of_a_run_is_that_of_its_steps(
    replica: Replica, sequences: int, first: int, count: int
) -> None:
    """A run of equal decode steps, each reading one token more per sequence than the one before."""
    times = step_time(*replica)
    contexts = [first + sequences * (step + 1) for step in range(count)]
    singles = arrays([(sequences, context, []) for context in contexts])
    total = {name: np.array([values.sum()]) for name, values in singles.items()}
    for together, apart in zip(times.work(**total), times.work(**singles), strict=True):
        assert together[0] == pytest.approx(apart.sum(), rel=1e-12)


def arrays(some: list[Step]) -> dict[str, np.ndarray]:
    """Return the arguments of ``work`` for runs of one step each."""
    runs = [
        {
            "steps": 1,
            "tokens": sequences + sum(new for new, _ in chunks),
            "rows": sequences + len(chunks),
            "pairs": context + sum(new * cached + new * (new + 1) // 2 for new, cached in chunks),
            "context": context + sum(new + cached for new, cached in chunks),
        }
        for sequences, context, chunks in some
    ]
    return {name: np.array([run[name] for run in runs]) for name in runs[0]}


def test_all_reduces_cost_what_their_messages_cost() -> None:
    """Llama-3.1-70B at TP 4, 4,000 tokens: 2 x 80 all-reduces of 4000 x 8192 x 2 bytes = 65.5 MB.

    Each GPU sends 98.3 MB, 218 us at 450 GB/s, + 3.6 us of hops: 160 x 222 us = 35.5 ms.
    """
    times = step_time(model("llama3.1-70b"), gpu("h100-sxm"), 4)
    (reduce,) = [one for one in times.breakdown(0, 0, [(4000, 0)]) if one.name == "all_reduce"]
    assert reduce.seconds == pytest.approx(160 * (1.5 * 65.536e6 / 450e9 + 3.6e-6))
    assert reduce.bytes == 4 * 160 * all_reduce_sent_bytes(65.536e6, 4)
    assert reduce.bound == "link"
    (reduce,) = [one for one in times.breakdown(1, 1, []) if one.name == "all_reduce"]
    assert reduce.bound == "latency"


def test_fp8_kv_halves_the_slope_where_bandwidth_bounds_it() -> None:
    llama, h100 = model("llama3.1-70b"), gpu("h100-sxm")
    assert step_time(llama, h100, 4, "fp8").decode(8, 8)[1] == step_time(llama, h100, 4).decode(8, 8)[1] / 2


def test_replicated_kv_heads_are_read_on_every_gpu() -> None:
    """16 GPUs hold 8 KV heads twice: a decode's slope is that of 8 GPUs."""
    llama, h100 = model("llama3.1-70b"), gpu("h100-sxm")
    assert step_time(llama, h100, 16).decode(8, 8)[1] == step_time(llama, h100, 8).decode(8, 8)[1]
