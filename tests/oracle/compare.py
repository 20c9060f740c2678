"""Holds a run of servesim equal to the oracle's."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import isclose, isnan

import pytest

from servesim.engine.log import COMPLETED, DROPPED, QUEUED, RUNNING
from tests.oracle import cluster
from tests.oracle.job import Job
from tests.oracle.step import Step
from tests.serving import Row, Run, end_s

RELATIVE = 1e-9

COUNTS = ("sequences", "decodes", "prefill_tokens", "waiting", "preempted")
MOMENTS = ("first_token_s", "finished_s")
PARTS = ("queue_s", "prefill_s", "preempted_s", "transfer_s", "decode_queue_s")


def assert_equal(got: Run, want: cluster.Run) -> None:
    """Assert that servesim has done, step by step and request by request, what the oracle did."""
    dropped = [row["request_id"] for row in got.requests if row["status"] == DROPPED]
    assert dropped == [job.id for job in want.dropped]
    _assert_same_order(got.completed, want.finished)
    on_the_way = {row["request_id"]: row["sent_s"] for row in got.requests if isnan(row["arrived_s"])}
    assert on_the_way == {job.id: pytest.approx(job.sent_s, rel=RELATIVE) for job in want.on_the_way}
    served = [row for row in got.by_id if row["status"] != DROPPED and not isnan(row["arrived_s"])]
    for row, job in zip(served, sorted(want.taken, key=lambda job: job.id), strict=True):
        _assert_same_request(row, job)
    for replica in range(len(want.free)):
        leaps = [row for row in got.leaps if row["replica"] == replica]
        _assert_same_steps(leaps, [step for step in want.steps if step.replica == replica])
    _assert_same_gaps(got, want)
    swaps = got.cluster.swaps
    assert (swaps.out_blocks, swaps.in_blocks) == tuple(
        sum(swap[way] for swap in want.swaps) for way in (0, 1)
    )


def assert_blocks_returned(got: Run, want: cluster.Run, capacities: list[int]) -> None:
    """Assert that no block is held when nothing is left to do."""
    assert [engine.kv.free for engine in got.engines] == want.free == capacities
    spaces = [engine.kv.swap for engine in got.engines if engine.kv.swap is not None]
    assert all(space.free == space.blocks for space in spaces)


def same(got: float, want: float, scale: float = 0.0) -> bool:
    """Return whether two times agree to 1e-9 of them, or of the clock (``scale``) they are differences of."""
    return (isnan(got) and isnan(want)) or isclose(got, want, rel_tol=RELATIVE, abs_tol=RELATIVE * scale)


def _assert_same_order(got: list[Row], want: list[Job]) -> None:
    """Requests finish in the same order; only two replicas may finish requests at one instant either way."""
    assert len(got) == len(want)
    for places in {(job.prefill_replica, job.replica) for job in want}:
        served = [row["request_id"] for row in got if (row["prefill_replica"], row["replica"]) == places]
        assert served == [job.id for job in want if (job.prefill_replica, job.replica) == places]
    finished = {job.id: job.finished_s for job in want}
    times = [finished[int(row["request_id"])] for row in got]
    assert all(earlier <= later or same(earlier, later) for earlier, later in pairwise(times))


def _assert_same_request(row: Row, job: Job) -> None:
    assert row["request_id"] == job.id
    for name in ("due_s", "sent_s", "arrived_s"):
        assert same(row[name], getattr(job, name)), (name, row[name], job)
    assert (row["input_tokens"], row["output_tokens"]) == (job.input_tokens, job.output_tokens)
    assert (row["generated"], row["preemptions"]) == (job.generated, job.preemptions), (row, job)
    assert row["cached_tokens"] == job.cached_tokens, (row, job)
    assert (row["replica"], row["prefill_replica"]) == (job.replica, job.prefill_replica)
    unfinished = QUEUED if isnan(job.scheduled_s) else RUNNING
    assert row["status"] == (unfinished if isnan(job.finished_s) else COMPLETED)
    clock_s = job.arrived_s if isnan(job.scheduled_s) else max(job.scheduled_s, *job.token_times, 0.0)
    for name in MOMENTS + PARTS:
        assert same(row[name], getattr(job, name), clock_s), (name, row[name], job)


def _assert_same_steps(leaps: list[Row], steps: list[Step]) -> None:
    remaining = iter(steps)
    for leap in leaps:
        for number, expanded in enumerate(expand(leap)):
            step = next(remaining, None)
            assert step is not None, f"a step too many: {expanded}"
            _assert_same_step(expanded, step, opens_leap=number == 0)
            if number == 0:
                assert leap["kv_blocks"] == step.kv_blocks, (leap, step)
            if number == leap["steps"] - 1:
                assert leap["kv_blocks_last"] == step.kv_blocks, (leap, step)
    assert next(remaining, None) is None, "a step too few"


def _assert_same_step(got: Row, want: Step, *, opens_leap: bool) -> None:
    assert same(got["start_s"], want.start_s), (got, want)
    assert same(got["duration_s"], want.duration_s), (got, want)
    assert got["context_tokens"] == want.context, (got, want)
    assert got["pairs"] == want.pairs, (got, want)
    for name in COUNTS:
        if name != "waiting" or opens_leap:
            assert got[name] == getattr(want, name), (name, got, want)


def expand(leap: Row) -> Iterator[Row]:
    """Yield the steps of a leap."""
    for step in range(int(leap["steps"])):
        yield {
            **leap,
            "start_s": end_s(leap, step),
            "duration_s": leap["first_step_s"] + step * leap["increment_s"],
            "context_tokens": leap["context_tokens"] + step * leap["sequences"],
            "pairs": leap["pairs"] + step * leap["sequences"],
            "preempted": leap["preempted"] if step == 0 else 0,
        }


def _assert_same_gaps(got: Run, want: cluster.Run) -> None:
    """The pooled gaps between tokens: every step once per decode, and every torn gap as often as said."""
    steps = [
        step["duration_s"]
        for row in got.leaps
        for number, step in enumerate(expand(row))
        for _ in range(int(row["decodes"] - (0 if number else row["stalled"])))
    ]
    gaps = steps + [row["gap_s"] for row in got.gaps for _ in range(int(row["sequences"]))]
    expected = [later - earlier for job in want.taken for earlier, later in pairwise(job.token_times)]
    assert len(gaps) == len(expected) == sum(max(job.generated - 1, 0) for job in want.taken)
    clock_s = max((time_s for job in want.taken for time_s in job.token_times), default=0.0)
    assert all(same(a, b, clock_s) for a, b in zip(sorted(gaps), sorted(expected), strict=True))
