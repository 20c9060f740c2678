"""Where simulated time is calibrated, between, or extrapolated."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim.cost.coverage import HOST, Spent, Steps, shares, within
from servesim.cost.fitted import FittedStepTime
from servesim.cost.gpu import Gpu
from servesim.cost.model import Model
from tests.cost.fitted import H100, OVERHEAD, fitted
from tests.cost.shipped import gpu, model, replicas, steps

Replica = tuple[Model, Gpu, int, str]
Step = tuple[int, int, list[tuple[int, int]]]
QWEN = model("qwen3-32b")
KINDS = Spent._fields


def run_of(times: FittedStepTime, *some: Step) -> Steps:
    """Return single steps as the log tells them."""
    rows = [
        (
            times.mixed(sequences, context, chunks),
            1,
            sequences + len(chunks),
            sequences,
            sum(new for new, _ in chunks),
            context + sum(new + cached for new, cached in chunks),
        )
        for sequences, context, chunks in some
    ]
    return Steps(*np.array(rows, dtype=float).T)


def kind(times: FittedStepTime, operation: str, *some: Step) -> str:
    """Return where all the time of an operation is."""
    spent = times.coverage.spent(run_of(times, *some))[operation]
    (name,) = [name for name, seconds in zip(KINDS, spent, strict=True) if seconds]
    return name


@given(replica=replicas(), some=st.lists(steps(), min_size=1, max_size=4))
def test_no_time_is_lost(replica: Replica, some: list[Step]) -> None:
    times = fitted(*replica)
    run = run_of(times, *some)
    spent = times.coverage.spent(run)
    assert sum(map(sum, spent.values())) == pytest.approx(run.seconds.sum(), rel=1e-9)
    assert sum(map(sum, shares(spent).values())) == pytest.approx(1)


@given(replica=replicas(), some=st.lists(steps(), min_size=1, max_size=4))
def test_operations_take_what_the_breakdown_says(replica: Replica, some: list[Step]) -> None:
    times = fitted(*replica)
    spent = times.coverage.spent(run_of(times, *some))
    told: dict[str, float] = {}
    for step in some:
        for one in times.breakdown(*step):
            name = HOST if one.name in ("host_step", "host_sequences") else one.name
            name = (
                "attention"
                if one.name in ("decode_attention", "prefill_attention", "prefill_factor")
                else name
            )
            told[name] = told.get(name, 0.0) + one.seconds
    assert spent.keys() == told.keys()
    assert {name: sum(each) for name, each in spent.items()} == pytest.approx(told, rel=1e-6)


@pytest.mark.parametrize(
    ("operation", "step", "expected"),
    [
        ("attention", (8, 8000, []), "calibrated"),
        ("attention", (8, 8 * 200_000, []), "extrapolated"),
        ("attention", (0, 0, [(1000, 0)]), "calibrated"),
        ("attention", (0, 0, [(1000, 500)]), "interpolated"),
        ("attention", (8, 8000, [(1000, 0)]), "interpolated"),
        ("attention", (0, 0, [(20_000, 0)]), "extrapolated"),
        ("attention", (8, 8000, [(20_000, 0)]), "extrapolated"),
        ("gate_up", (8, 8000, []), "calibrated"),
        ("gate_up", (0, 0, [(40_000, 0)]), "extrapolated"),
        ("lm_head", (8, 8000, []), "calibrated"),
        ("small_kernels", (8, 8000, []), "interpolated"),
        ("all_reduce", (8, 8000, []), "calibrated"),
        ("all_reduce", (0, 0, [(16_000, 0)]), "extrapolated"),
        (HOST, (8, 8000, []), "interpolated"),
    ],
)
def test_where_an_operation_lies(operation: str, step: Step, expected: str) -> None:
    assert kind(fitted(QWEN, tensor_parallel_size=4), operation, step) == expected


def test_a_head_wider_than_any_product_timed_is_extrapolated() -> None:
    """151,936 columns on one GPU; the widest product has 65,536."""
    assert kind(fitted(QWEN), "lm_head", (8, 8000, [])) == "extrapolated"


@pytest.mark.parametrize(
    ("changes", "outside"),
    [
        ({"weights_dtype": "int4"}, {"qkv", "o", "gate_up", "down"}),
        ({"weights_dtype": "fp8"}, set()),
    ],
)
def test_a_format_without_a_table_is_extrapolated(changes: dict[str, Any], outside: set[str]) -> None:
    times = fitted(model("qwen3-32b", **changes), tensor_parallel_size=4)
    spent = times.coverage.spent(run_of(times, (8, 8000, [])))
    assert {name for name, each in spent.items() if each.extrapolated} == outside


def test_on_another_gpu_all_kernels_are_extrapolated() -> None:
    times = fitted(QWEN, gpu("a100-sxm-80gb"), 4)
    spent = times.coverage.spent(run_of(times, (8, 8000, [])))
    assert {name for name, each in spent.items() if not each.extrapolated} == {HOST}


def test_a_run_of_steps_counts_as_often_as_it_has_steps() -> None:
    times = fitted(QWEN, H100, 4)
    one = run_of(times, (8, 8000, []))
    ten = one._replace(seconds=10 * one.seconds, steps=10 * one.steps)
    for name, each in times.coverage.spent(one).items():
        assert np.array(times.coverage.spent(ten)[name]) == pytest.approx(10 * np.array(each))


def test_within_is_all_sizes_at_once() -> None:
    ranges = {"m": (1.0, 10.0), "n": (5.0, 6.0)}
    assert within(ranges, m=np.array([1, 10, 11, 5]), n=np.array([5, 6, 5, 7])).tolist() == [
        True,
        True,
        False,
        False,
    ]
    assert not within(None, m=1)
    assert shares({}) == {}


@given(most=st.integers(1, 300), sequences=st.integers(1, 300))
def test_the_hosts_time_is_extrapolated_beyond_the_sequences_that_were_fitted(
    most: int, sequences: int
) -> None:
    """Of fewer than the fitted ones it lies between nothing and what was fitted."""
    ranged = replace(OVERHEAD, ranges={"sequences": [min(8, most), most]})
    times = fitted(QWEN, H100, 4, overhead=ranged)
    expected = "extrapolated" if sequences > most else "interpolated"
    assert kind(times, HOST, (sequences, 1000 * sequences, [])) == expected


def test_chunks_are_sequences_of_the_host_too() -> None:
    times = fitted(QWEN, H100, 4, overhead=replace(OVERHEAD, ranges={"sequences": [8, 16]}))
    assert kind(times, HOST, (15, 15_000, [(100, 0)])) == "interpolated"
    assert kind(times, HOST, (15, 15_000, [(100, 0), (100, 0)])) == "extrapolated"
