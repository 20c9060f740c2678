"""What requests of a trace share, in the window and order in which they are sent, and for whom they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from servesim.check import check
from servesim.streams import Streams
from servesim.workload.origin import ANYWHERE, Origin
from servesim.workload.tenant import Tenant
from servesim.workload.trace import Trace

#: Sent second, first, third and last: when (ms), tokens in, blocks of 512 tokens.
ROWS = [(2000, 1300, [1, 2, 3]), (1000, 900, [8, 9]), (3000, 1400, [1, 2, 4]), (9000, 800, [8, 7])]


@pytest.fixture
def path(tmp_path: Path) -> str:
    lines = (
        json.dumps({"timestamp": time_ms, "input_length": tokens, "output_length": 1, "hash_ids": ids})
        for time_ms, tokens, ids in ROWS
    )
    (tmp_path / "trace.jsonl").write_text("\n".join(lines))
    return str(tmp_path / "trace.jsonl")


def origins(trace: Trace) -> list[Origin] | None:
    check(trace)
    (batch,) = trace.batches(Streams(0))
    assert batch.origins is None or len(batch.origins) == batch.size
    return None if batch.origins is None else list(batch.origins)


def test_requests_share_the_blocks_that_their_prompts_begin_with(path: str) -> None:
    first, second, third, last = origins(Trace(path)) or []
    assert first.prefix == last.prefix == ((first.prefix[0][0], 512),)
    assert second.prefix == third.prefix == ((second.prefix[0][0], 1024),)
    assert first.prefix[0][0] != second.prefix[0][0]
    assert {each._replace(prefix=()) for each in (first, second, third, last)} == {ANYWHERE}


def test_what_is_outside_the_window_is_shared_with_nobody(path: str) -> None:
    """Of the last three, the last has no one left to share with."""
    second, third, last = origins(Trace(path, start_s=0.5)) or []
    assert (len(second.prefix), len(third.prefix), last) == (1, 1, ANYWHERE)
    assert origins(Trace(path, requests=2)) == [ANYWHERE] * 2


def test_sharing_can_be_switched_off(path: str) -> None:
    assert origins(Trace(path, prefix_sharing=False)) is None


def test_requests_of_a_trace_have_tenants_beside_what_they_share(path: str) -> None:
    tenants = {"a": Tenant(priority=1), "b": Tenant(priority=1)}
    shared, alone = (origins(Trace(path, prefix_sharing=on, tenants=tenants)) or [] for on in (True, False))
    assert {each.priority for each in shared} == {1}
    assert [each.prefix for each in shared] == [each.prefix for each in origins(Trace(path)) or []]
    assert [each.tenant for each in shared] == [each.tenant for each in alone]
