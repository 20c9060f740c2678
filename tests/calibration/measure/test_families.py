"""What the calls of each family compute, and that they go through buffers of their own."""

from types import SimpleNamespace
from typing import Any

import pytest

from calibration.measure.case import Case, UnsupportedError
from calibration.measure.plan import COLLECTIVES, plan
from tests.calibration.measure.kernels import FLASH_ATTENTION, FLASHINFER, READ, attention, torch

from calibration.measure import elementwise, moe  # isort: skip
from calibration.measure.bench import Bench  # isort: skip
from calibration.measure.families import PREPARE  # isort: skip
from calibration.measure.timer import Timer  # isort: skip
from calibration.sources.tidy import SHAPES  # isort: skip

CASES = [case for case in plan("cpu") if case.operation not in COLLECTIVES]
HEADS = {"heads": 8, "kv_heads": 2, "head_dim": 16, "window": 0}


def bench(**libraries: SimpleNamespace) -> Bench:
    made = Bench("cpu")
    made.__dict__["libraries"] = libraries
    return made


def needs_a_gpu(case: Case) -> bool:
    fp8_kv = case.operation == "decode_attention" and case["kv_dtype"] == "fp8"
    return fp8_kv or bool({"graph", "device", "host_to_device", "device_to_host"} & set(case.values))


def decode(kv_dtype: str = "bf16", length: int = 37) -> Case:
    return Case.of("decode_attention", kv_dtype=kv_dtype, batch=3, length=length, **HEADS)


def near(one: Any, other: Any) -> bool:
    return bool(torch.allclose(one.float(), other.float(), atol=0.03, rtol=0.03))


def test_every_operation_of_the_tables_has_a_family() -> None:
    assert set(PREPARE) | set(COLLECTIVES) == set(SHAPES)


@pytest.mark.parametrize("case", CASES, ids=[f"{case.operation} {case}" for case in CASES])
def test_every_family_runs_on_a_cpu_or_says_what_it_needs(case: Case) -> None:
    here = bench()
    if needs_a_gpu(case):
        with pytest.raises(UnsupportedError, match="needs"):
            PREPARE[case.operation](case, here)
        return
    prepared = PREPARE[case.operation](case, here)
    timing = Timer(here).timed(prepared)
    assert prepared.kernel.startswith("torch_")
    assert timing.how == "host"
    assert 0 < timing.fastest <= timing.seconds <= timing.slowest


@pytest.mark.parametrize("operation", ["gemm", "decode_attention", "prefill_attention", "moe", "copy"])
def test_weights_kv_and_sources_differ_from_call_to_call(operation: str) -> None:
    case = next(case for case in CASES if case.operation == operation and not needs_a_gpu(case))
    calls = PREPARE[operation](case, bench()).calls
    buffers = [
        {part.data_ptr() for part in call.args if isinstance(part, torch.Tensor)}  # type: ignore[attr-defined]
        for call in calls
    ]
    assert len(calls) > 1
    assert len(set().union(*buffers)) > len(buffers[0])


def test_numbers_are_random_and_the_same_in_every_run() -> None:
    one, other = (Bench("cpu").random(64, 64) for _ in range(2))
    assert torch.equal(one, other)
    assert 0.9 < float(one.float().std()) < 1.1


def test_products_in_fp8_are_near_those_of_their_numbers() -> None:
    case = Case.of("gemm", dtype="fp8", m=16, n=64, k=32)
    prepared = PREPARE["gemm"](case, bench())
    inputs, weights = prepared.calls[0].args  # type: ignore[attr-defined]
    assert near(prepared.calls[0](), inputs.float() @ weights.float())


@pytest.mark.parametrize("prefix", [0, 24])
@pytest.mark.parametrize("library", [None, "flash_attn", "flash_attn_interface"])
def test_prompts_attend_to_their_prefix_and_to_what_is_before_them(library: str | None, prefix: int) -> None:
    case = Case.of(
        "prefill_attention", dtype="bf16", kv_dtype="bf16", batch=2, length=9, prefix=prefix, **HEADS
    )
    prepared = PREPARE["prefill_attention"](case, bench(**({library: FLASH_ATTENTION} if library else {})))
    query, keys, values = prepared.calls[0].args  # type: ignore[attr-defined]
    found = prepared.calls[0]()
    assert prepared.kernel == (library or "torch_sdpa")
    if library:
        query, keys, values, found = (each.transpose(1, 2) for each in (query, keys, values, found))
    assert keys.shape == (2, 2, 9 + prefix, 16)
    for at in range(2):
        assert near(found[at], attention(query[at], keys[at], values[at]))


@pytest.mark.parametrize(
    ("library", "kernel", "page"),
    [
        (None, "torch_sdpa_contiguous", None),
        ("flashinfer", "flashinfer_batch_decode", 16),
        ("flash_attn_interface", "flash_attn_interface_kvcache", 16),
        ("flash_attn", "flash_attn_kvcache", 256),
    ],
)
@pytest.mark.parametrize("length", [1, 16, 37, 300])
def test_decodes_attend_to_all_of_their_kv(library: str | None, kernel: str, page: int, length: int) -> None:
    kind = FLASHINFER if library == "flashinfer" else FLASH_ATTENTION
    case = decode(length=length)
    prepared = PREPARE["decode_attention"](case, bench(**({library: kind} if library else {})))
    assert prepared.kernel == kernel
    READ.clear()
    assert prepared.calls[0]().numel() == 3 * 8 * 16
    if library:
        pages = -(-length // page)
        assert [read for read, _ in READ] == [length] * 3
        assert sorted(each for _, read in READ for each in read) == list(range(3 * pages))
        cache = prepared.calls[0].args[1]  # type: ignore[attr-defined]
        cache = cache[0] if isinstance(cache, tuple) else cache
        assert cache.shape == (3 * pages, page, 2, 16)


def test_fp8_kv_takes_flashinfer() -> None:
    with pytest.raises(UnsupportedError, match="needs FlashInfer"):
        PREPARE["decode_attention"](decode("fp8"), bench(flash_attn=FLASH_ATTENTION))
    prepared = PREPARE["decode_attention"](decode("fp8"), bench(flashinfer=FLASHINFER))
    assert prepared.calls[0].args[1][0].dtype == torch.float8_e4m3fn  # type: ignore[attr-defined]
    assert prepared.calls[0]().shape == (3, 8, 16)


@pytest.mark.parametrize("distribution", ["balanced", "power_law_1.2"])
def test_a_loop_over_experts_computes_the_same_and_says_that_it_is_one(
    distribution: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = {"tokens": 24, "hidden": 32, "inter": 64, "experts": 4, "top_k": 2, "tp": 2, "ep": 1}
    case = Case.of("moe", dtype="bf16", distribution=distribution, gated=True, **sizes)
    grouped = PREPARE["moe"](case, bench())
    monkeypatch.delattr(moe.functional, "grouped_mm")
    looped = PREPARE["moe"](case, bench())
    assert (grouped.kernel, looped.kernel) == ("torch_grouped_mm", "torch_loop")
    assert grouped.calls[0]().shape == (48, 32)
    assert near(grouped.calls[0](), looped.calls[0]())


def test_rotation_keeps_lengths_and_leaves_the_first_token() -> None:
    prepared = PREPARE["rope"](Case.of("rope", dtype="bf16", tokens=5, width=256), bench())
    heads = prepared.calls[0].args[0]  # type: ignore[attr-defined]
    turned = prepared.calls[0]()
    assert torch.equal(turned[0], heads[0])
    assert near(turned.float().norm(dim=-1), heads.float().norm(dim=-1))
    assert not near(turned[1], heads[1])


@pytest.mark.parametrize("operation", ["norm", "rope", "activation"])
def test_flashinfers_kernels_touch_as_many_numbers_as_torchs(operation: str) -> None:
    case = Case.of(operation, dtype="bf16", tokens=5, width=9 * 128)
    plain, own = (PREPARE[operation](case, each) for each in (bench(), bench(flashinfer=FLASHINFER)))
    assert (plain.kernel, own.kernel.partition("_")[0]) == ("torch_eager", "flashinfer")
    for each in (plain, own):
        each.calls[0]()
    numbers = [
        sum(
            part.numel()
            for part in each.calls[0].args  # type: ignore[attr-defined]
            if isinstance(part, torch.Tensor) and part.dtype == torch.bfloat16
        )
        for each in (plain, own)
    ]
    assert numbers[0] == numbers[1]


def test_a_norm_of_the_sum_has_mean_square_one() -> None:
    ones = torch.ones(64, dtype=torch.bfloat16)
    normed, total = elementwise.add_norm(3 * ones[None], ones[None], ones)
    assert near(normed, ones[None])
    assert near(total, 4 * ones[None])


def test_quantising_by_the_scale_found_uses_all_of_fp8() -> None:
    values = Bench("cpu").random(32, 64) * 1000
    scale = elementwise.scale_of(values)
    quantised = elementwise.scaled(values, scale).float()
    assert float(quantised.abs().max()) == elementwise.FP8_MOST
    assert float((quantised * scale - values.float()).abs().max()) < 0.04 * float(values.abs().max())


def test_experts_of_other_kinds_are_refused() -> None:
    sizes = {"tokens": 8, "hidden": 32, "inter": 64, "experts": 4, "top_k": 2, "tp": 1}
    for other in ({"dtype": "fp8", "gated": True, "ep": 1}, {"dtype": "bf16", "gated": False, "ep": 1}):
        with pytest.raises(UnsupportedError, match="only gated ones in BF16"):
            PREPARE["moe"](Case.of("moe", distribution="balanced", **sizes, **other), bench())
