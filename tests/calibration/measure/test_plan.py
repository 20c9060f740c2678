"""Plans: what they take, what a smaller budget leaves of them, and how long they last on an H100."""

from collections import Counter

import numpy as np
import pytest

from calibration.fit.rows import FEWEST_ROWS
from calibration.measure import predicted, shapes
from calibration.measure.case import PLANNED, Case
from calibration.measure.plan import (
    COLLECTIVES,
    LIMIT_S,
    blocks,
    case_bytes,
    case_seconds,
    gpus_of,
    limit_seconds,
    plan,
    run_seconds,
)
from calibration.sources.tidy import SHAPES, SourceError
from tests.shared import ROOT

DEFAULT = plan("cuda")


def of(cases: list[Case], operation: str) -> list[Case]:
    return [case for case in cases if case.operation == operation]


def test_the_default_plan_lasts_less_than_ten_minutes() -> None:
    assert run_seconds(DEFAULT) < LIMIT_S == limit_seconds(1) == 600


@pytest.mark.parametrize("budget", [0.01, 0.1, 0.5, 2.0, 5.0])
def test_other_plans_end_before_their_limit(budget: float) -> None:
    assert run_seconds(plan("cuda", budget)) < limit_seconds(budget)


def test_every_case_fits_80_gb() -> None:
    assert max(map(case_bytes, plan("cuda", 100))) < 80e9


def test_no_case_takes_more_than_a_small_part_of_the_time() -> None:
    assert max(map(case_seconds, DEFAULT)) < 0.01 * LIMIT_S


@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_every_operation_of_the_tables_is_planned_and_no_shape_twice(device: str) -> None:
    cases = plan(device)
    assert {case.operation for case in cases} == set(SHAPES)
    assert len(set(cases)) == len(cases)


@pytest.mark.parametrize("small", [0.01, 0.2, 0.7])
def test_a_smaller_budget_takes_the_first_shapes_of_every_operation(small: float) -> None:
    few = plan("cuda", small)
    for operation in SHAPES:
        part, whole = of(few, operation), of(DEFAULT, operation)
        assert 1 <= len(part) <= len(whole)
        assert set(part) == set(whole[: len(part)] if operation not in COLLECTIVES else part) & set(whole)


def test_a_larger_budget_times_more_shapes_of_the_same_grids() -> None:
    many = plan("cuda", 2)
    assert set(DEFAULT) < set(many)
    assert set(many) <= {case for cases in shapes.on_gpu().values() for case in cases}


@pytest.mark.parametrize("part", [0.1, 0.3, 0.6])
def test_a_run_that_is_cut_off_has_as_much_of_every_operation(part: float) -> None:
    single = [case for case in DEFAULT if gpus_of(case) == 1]
    began = Counter(case.operation for case in single[: round(part * len(single))])
    for operation, number in Counter(case.operation for case in single).items():
        assert abs(began[operation] - part * number) <= 1.5


@pytest.mark.parametrize("operation", ["gemm", "decode_attention", "prefill_attention", "moe"])
def test_the_first_shapes_span_the_range(operation: str) -> None:
    grid = shapes.on_gpu()[operation]
    first = of(DEFAULT, operation)[:40]
    for name in PLANNED[operation]:
        values = {case[name] for case in grid}
        if isinstance(next(iter(values)), str):
            assert {case[name] for case in first} == values
        else:
            assert min(case[name] for case in first) <= 2 * min(values)
            assert max(case[name] for case in first) >= max(values) / 2


def test_the_default_plan_has_rows_enough_for_every_fit() -> None:
    formats = Counter(
        (case.operation, case.shape.get("kv_dtype", case.shape.get("dtype")), case.shape.get("mode"))
        for case in DEFAULT
    )
    for fit in (
        ("gemm", "bf16", None),
        ("gemm", "fp8", None),
        ("decode_attention", "bf16", None),
        ("decode_attention", "fp8", None),
        ("prefill_attention", "bf16", None),
        ("moe", "bf16", None),
        ("quantise", "fp8", "static"),
        ("quantise", "fp8", "compute_scale"),
    ):
        assert formats[fit] >= FEWEST_ROWS, fit


def test_prompts_are_timed_with_and_without_a_cached_prefix() -> None:
    prefixes = Counter(case["prefix"] > 0 for case in of(DEFAULT, "prefill_attention"))
    assert min(prefixes[True], prefixes[False]) >= 40


def test_collectives_of_a_number_of_gpus_come_in_one_block() -> None:
    numbers = [gpus_of(block[0]) for block in blocks(DEFAULT)]
    assert numbers == [1, 2, 4, 8, 1]
    assert [case for block in blocks(DEFAULT) for case in block] == DEFAULT


def test_the_readme_says_how_many_shapes_and_minutes() -> None:
    said = " ".join((ROOT / "calibration" / "README.md").read_text().split())
    assert f"times {len(DEFAULT):,} shapes" in said
    assert "seven to eight minutes" in said
    assert 7 < run_seconds(DEFAULT) / 60 < 8


def test_a_plan_is_the_same_every_time() -> None:
    assert plan("cuda") == DEFAULT


@pytest.mark.parametrize("budget", [0.0, -1.0, float("nan"), float("inf"), 1e9])
def test_a_budget_must_be_positive(budget: float) -> None:
    with pytest.raises(SourceError, match="must be above 0 and at most 100"):
        plan("cuda", budget)


def test_predicted_times_are_positive_and_grow_with_every_size() -> None:
    bigger = {"m", "batch", "length", "tokens", "bytes", "kernels"}
    for case in DEFAULT:
        now = predicted.seconds(case)
        assert np.isfinite(now)
        assert now > 0
        for name in bigger & set(case.shape):
            more = Case.of(case.operation, **case.shape | {name: 4 * case[name]})
            assert predicted.seconds(more) >= now


@pytest.mark.parametrize(
    ("rotated", "buffers"), [(0, 1), (1, 32), (10 << 20, 10), (100 << 20, 1), (1 << 33, 1)]
)
def test_buffers_fill_twice_the_cache_as_far_as_calls_go(rotated: int, buffers: int) -> None:
    assert predicted.copies(rotated, 50 << 20, 32) == buffers
