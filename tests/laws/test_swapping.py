"""Swapping spares preempted requests the recomputing, for the time of the copies and room on the host."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servesim.cost.memory import GIB
from servesim.engine.continuous import Continuous
from servesim.workload.request import Request
from tests.costs import AffineStepTime
from tests.laws.cases import Case, cases
from tests.laws.holdings import held_blocks
from tests.serving import Run, Service

KINDS = ("continuous", "disaggregated")
AMPLE = 1e6


def swapping(case: Case, blocks: float, pcie_bytes_per_s: float = 1e21) -> Case:
    """Return a case with room on the host for so many blocks; a token's KV is one byte."""
    space = blocks * case.service.scheduler.block_size / GIB
    scheduler = replace(case.service.scheduler, preemption_mode="swap", swap_space=space)
    service = replace(case.service, scheduler=scheduler, pcie_bytes_per_s=pcie_bytes_per_s)
    return replace(case, service=service)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(data=st.data())
def test_without_room_on_the_host_it_is_recomputing(kind: str, data: st.DataObject) -> None:
    """To the last byte, whatever the speed of copies that never happen."""
    case = data.draw(cases(kind))
    one, other = case.serve(), swapping(case, 0, 1.0).serve()
    for name in ("requests", "steps", "gaps"):
        assert getattr(one.log, name).tobytes() == getattr(other.log, name).tobytes()


@settings(max_examples=60)
@given(data=st.data())
def test_with_ample_room_nothing_is_computed_twice(data: st.DataObject) -> None:
    """Every token of a request is computed once: i + o - 1 of i in and o out."""
    run = swapping(data.draw(cases("continuous")), AMPLE).serve()
    assert computed_tokens(run) == sum(
        row["input_tokens"] + row["output_tokens"] - 1 for row in run.completed
    )


def computed_tokens(run: Run) -> float:
    """Return the tokens of all chunks and of all decodes."""
    return sum(leap["prefill_tokens"] + leap["decodes"] * leap["steps"] for leap in run.leaps)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60)
@given(data=st.data())
def test_blocks_on_both_sides_are_those_of_requests(kind: str, data: st.DataObject) -> None:
    """At every instant; and the host is never fuller than full."""
    run = swapping(data.draw(cases(kind)), data.draw(st.sampled_from((3, 8, 20, 40))), 100.0).open()
    for _ in run.instants():
        for engine in run.engines:
            assert engine.kv.free + held_blocks(engine, run.seen) == engine.kv.blocks
            assert 0 <= engine.kv.swap.free == engine.kv.swap.blocks - on_host(engine.waiting, engine)
    assert all(engine.kv.swap.free == engine.kv.swap.blocks for engine in run.engines)


def on_host(waiting: list[Request], engine: object) -> int:
    """Return the blocks that the host holds of waiting requests."""
    size = engine.kv.block_size  # type: ignore[attr-defined]
    return sum(ceil(request.swapped / size) for request in waiting)


def test_faster_copies_end_sooner_and_free_ones_sooner_than_recomputing() -> None:
    """64 requests of 100 in and 60 out with KV for 14 of them; recomputing costs a millisecond a token."""
    step_time = AffineStepTime(step_s=0.01, prefill_token_s=1e-3)
    limits = Continuous(max_num_seqs=16, block_size=4, enable_prefix_caching=False)
    case = Case(Service(limits, step_time, kv_blocks=480), ((0.0, 100, 60),) * 64)
    ends = [swapping(case, AMPLE, speed).serve() for speed in (1e3, 1e4, 1e5, 1e21)]
    runs_s = [max(row["finished_s"] for row in run.completed) for run in (*ends, case.serve())]
    assert all(slower > faster for slower, faster in pairwise(runs_s[:4]))
    assert runs_s[3] < 0.9 * runs_s[4] < runs_s[0]
