"""Step tables computed by hand, read out of a test's docstring.

A row of a step table reads ``start | scheduled | duration | blocks | waiting | preempted``, behind the
replica's number where there are several. Scheduled are ``A:3+2`` (a chunk of A: 3 new tokens behind 2
cached ones), ``A:5`` (a decode of A that reads 5 tokens) and ``(A:5)`` (a row of a static batch whose
request has finished). A line ``A emits at 1.5, 2.5`` lists the moments of A's tokens.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.oracle.cluster import Run
from tests.oracle.step import Step

TOLERANCE_S = 1e-6
"""Tables leave out the 0.1 us by which arrivals are seen early and hand-offs late."""


def assert_follows(run: Run, test: Callable[[], None]) -> None:
    """Assert that a run is what the docstring of ``test`` says, step by step and token by token."""
    assert test.__doc__
    lines = [line.strip() for line in test.__doc__.splitlines()]
    expected = [read_step(line) for line in lines if re.match(r"[\d.]+ +\|", line)]
    assert expected, "the docstring has no table"
    for got, want in zip(run.steps, expected, strict=True):
        assert got._asdict() == pytest.approx(want._asdict(), rel=0, abs=TOLERANCE_S)
    emitted = dict(read_tokens(line) for line in lines if " emits at " in line)
    assert {chr(ord("A") + job.id): job.token_times for job in run.finished} == {
        name: pytest.approx(times, rel=0, abs=TOLERANCE_S) for name, times in emitted.items()
    }


def read_step(line: str) -> Step:
    """Read one row of a table."""
    cells = [cell.strip() for cell in line.split("|")]
    replica = int(cells.pop(0)) if len(cells) == 7 else 0
    start, scheduled, duration, blocks, waiting, preempted = cells
    rows = scheduled.split()
    chunks = [tuple(map(int, row.split(":")[1].split("+"))) for row in rows if "+" in row]
    decodes = [int(row.strip("()").split(":")[1]) for row in rows if "+" not in row]
    emitting = sum("+" not in row and "(" not in row for row in rows)
    return Step(
        replica=replica,
        start_s=float(start),
        duration_s=float(duration),
        sequences=len(rows),
        decodes=emitting,
        prefill_tokens=sum(new for new, _ in chunks),
        context=sum(decodes) + sum(new + cached for new, cached in chunks),
        pairs=sum(decodes) + sum(new * cached + new * (new + 1) // 2 for new, cached in chunks),
        kv_blocks=int(blocks),
        waiting=int(waiting),
        preempted=int(preempted),
        emitted=emitting,
    )


def read_tokens(line: str) -> tuple[str, Any]:
    """Read the moments of one request's tokens."""
    name, times = line.split(" emits at ")
    return name, [float(time) for time in times.rstrip(".").split(",")]
