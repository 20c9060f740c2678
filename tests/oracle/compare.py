"""Holds a run of servesim equal to the oracle's."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import isclose, isnan

import pytest

from servesim.engine.continuous import Continuous
from servesim.engine.log import COMPLETED, DROPPED, QUEUED, RUNNING, TIMED_OUT
from tests.oracle import cluster
from tests.oracle.job import Job
from tests.oracle.step import Step
from tests.serving import Row, Run, end_s

RELATIVE = 1e-9

COUNTS = ("sequences", "decodes", "prefill_tokens", "waiting", "preempted")
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
    queries = queries_of(got)
    for replica in range(len(want.free)):
        leaps = [row for row in got.leaps if row["replica"] == replica]
        _assert_same_steps(leaps, [step for step in want.steps if step.replica == replica], queries)
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
    assert row["status"] == _status(job), (row, job)
    clock_s = job.arrived_s if isnan(job.scheduled_s) else max(job.scheduled_s, *job.token_times, 0.0)
    for name in ("first_token_s", *PARTS):
        assert same(row[name], getattr(job, name), clock_s), (name, row[name], job)
    assert same(row["finished_s"], job.hung_up_s if job.given_up else job.finished_s), (row, job)


def _status(job: Job) -> int:
    if job.given_up:
        return TIMED_OUT
    unfinished = QUEUED if isnan(job.scheduled_s) else RUNNING
    return unfinished if isnan(job.finished_s) else COMPLETED


def queries_of(run: Run) -> int:
    """Return the tokens that a decode of a run has in a step."""
    scheduler = run.service.scheduler
    return scheduler.queries if isinstance(scheduler, Continuous) else 1


def _assert_same_steps(leaps: list[Row], steps: list[Step], queries: int) -> None:
    remaining = iter(steps)
    for leap in leaps:
        for number, expanded in enumerate(expand(leap, queries)):
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
    assert got["context_tokens"] == pytest.approx(want.context, rel=RELATIVE), (got, want)
    assert got["pairs"] == pytest.approx(want.pairs, rel=RELATIVE), (got, want)
    assert got["emitted"] == pytest.approx(want.emitted, rel=RELATIVE), (got, want)
    for name in COUNTS:
        if name != "waiting" or opens_leap:
            assert got[name] == getattr(want, name), (name, got, want)


def expand(leap: Row, queries: int) -> Iterator[Row]:
    """Yield the steps of a leap, in which each decode has so many tokens."""
    growth = leap["sequences"] if queries == 1 else leap["emitted"]
    for step in range(int(leap["steps"])):
        yield {
            **leap,
            "start_s": end_s(leap, step),
            "duration_s": leap["first_step_s"] + step * leap["increment_s"],
            "context_tokens": leap["context_tokens"] + step * growth,
            "pairs": leap["pairs"] + step * growth * queries,
            "preempted": leap["preempted"] if step == 0 else 0,
        }


def _assert_same_gaps(got: Run, want: cluster.Run) -> None:
    """The pooled gaps between tokens: every step once per decode, and every torn gap as often as said.

    Where drafts are verified, they are gaps between pieces of one token or more.
    """
    queries = queries_of(got)
    steps = [
        step["duration_s"]
        for row in got.leaps
        for number, step in enumerate(expand(row, queries))
        for _ in range(int(row["decodes"] - (0 if number else row["stalled"])))
    ]
    gaps = steps + [row["gap_s"] for row in got.gaps for _ in range(int(row["sequences"]))]
    emitted = [job.token_times + job.unheard for job in want.taken]
    expected = [later - earlier for times in emitted for earlier, later in pairwise(times)]
    assert len(gaps) == len(expected) == sum(max(len(times) - 1, 0) for times in emitted)
    if queries == 1:
        assert [job.generated for job in want.taken] == [len(job.token_times) for job in want.taken]
    else:
        assert len(gaps) <= sum(max(job.generated - 1, 0) + len(job.unheard) for job in want.taken)
    clock_s = max((time_s for job in want.taken for time_s in job.token_times), default=0.0)
    assert all(same(a, b, clock_s) for a, b in zip(sorted(gaps), sorted(expected), strict=True))
