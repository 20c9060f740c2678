"""Static batching, one rule at a time. Every step takes 1 s, unless a test says otherwise."""

from __future__ import annotations

import pytest

from servesim.engine.log import QUEUED, RUNNING
from servesim.engine.static import Static
from tests.costs import AffineStepTime, constant_step
from tests.serving import Run, Sent, Service


def serve(
    *requests: Sent,
    batch_size: int = 2,
    timeout_s: float = 10.0,
    kv_blocks: int = 1000,
    step_time: AffineStepTime | None = None,
    horizon_s: float | None = None,
) -> Run:
    """Serve requests by one replica with blocks of four tokens."""
    service = Service(Static(batch_size, timeout_s, block_size=4), step_time or constant_step(1.0), kv_blocks)
    return service.serve(requests, horizon_s=horizon_s)


def scheduled(run: Run) -> list[float]:
    """Return when each request's batch started, in the order of sending."""
    return [row["sent_s"] + row["queue_s"] for row in run.by_id]


def test_a_batch_starts_when_it_is_full() -> None:
    assert scheduled(serve((0.0, 1, 1), (3.0, 1, 1))) == [3.0, 3.0]


def test_a_batch_starts_when_its_first_request_has_waited_long_enough() -> None:
    assert scheduled(serve((1.0, 1, 1), (2.0, 1, 1), batch_size=8)) == [11.0, 11.0]


def test_without_a_timeout_nobody_waits_for_company() -> None:
    """The second comes while the first is served, the third while the second is."""
    assert scheduled(serve((0.0, 1, 2), (0.5, 1, 1), (2.5, 1, 1), timeout_s=0.0)) == [0.0, 2.0, 3.0]


def test_the_timeout_runs_while_a_batch_is_served() -> None:
    """Sent at 1, it times out at 11; the batch before ends at 20, and then it starts at once."""
    run = serve((0.0, 1, 20), (0.0, 1, 20), (1.0, 1, 1))
    assert scheduled(run) == [0.0, 0.0, 20.0]


def test_nobody_joins_a_batch_under_way() -> None:
    run = serve((0.0, 1, 5), (0.0, 1, 5), (1.0, 1, 1), (1.0, 1, 1))
    assert scheduled(run) == [0.0, 0.0, 5.0, 5.0]
    assert [leap["waiting"] for leap in run.leaps] == [0, 2, 0]


def test_prompts_are_padded_to_the_longest() -> None:
    """0.1 s per prompt token: two rows of seven tokens take 1 + 1.4 s, and both first tokens leave then."""
    run = serve((0.0, 3, 1), (0.0, 7, 1), step_time=AffineStepTime(step_s=1.0, prefill_token_s=0.1))
    assert run.leaps[0]["prefill_tokens"] == 14
    assert run.leaps[0]["pairs"] == 2 * 28
    assert [row["finished_s"] for row in run.by_id] == pytest.approx([2.4, 2.4])


def test_a_row_is_computed_until_the_batch_ends() -> None:
    """Outputs of 2 and 5: the first request finishes at 2, its row goes on to 5.

    Steps take 1 s and 0.1 s per row: 1 s (prefill), then 1.2 s each, with two rows to the end.
    """
    run = serve((0.0, 1, 2), (0.0, 1, 5), step_time=AffineStepTime(step_s=1.0, sequence_s=0.1))
    assert [row["finished_s"] for row in run.by_id] == pytest.approx([2.2, 5.8])
    assert [(leap["steps"], leap["sequences"], leap["decodes"]) for leap in run.leaps] == [
        (1, 2, 0),
        (1, 2, 2),
        (3, 2, 1),
    ]


def test_rows_read_the_longest_prompt() -> None:
    """Prompts of 3 and 7: each decode step reads 2 x (7 + tokens out)."""
    run = serve((0.0, 3, 4), (0.0, 7, 2))
    assert [leap["context_tokens"] for leap in run.leaps] == [14, 16, 18]


def test_the_next_batch_waits_for_the_longest_output() -> None:
    run = serve((0.0, 1, 1), (0.0, 1, 6), (0.0, 1, 1), (0.0, 1, 1))
    assert scheduled(run) == [0.0, 0.0, 6.0, 6.0]
    assert [row["finished_s"] for row in run.by_id] == [1.0, 6.0, 7.0, 7.0]


def test_room_is_reserved_for_the_longest_prompt_and_output() -> None:
    """Prompt 5 and output 8, of different requests: each row reserves ceil(13/4) = 4 blocks, to the end."""
    run = serve((0.0, 5, 2), (0.0, 2, 8))
    assert {leap["kv_blocks"] for leap in run.leaps} == {8}


def test_a_batch_shrinks_to_what_fits() -> None:
    """Seven blocks: a pair of rows would reserve eight, so each request has a batch of its own."""
    run = serve((0.0, 5, 2), (0.0, 2, 9), kv_blocks=7)
    assert scheduled(run) == [0.0, 10.0], "the second has to time out"
    assert [leap["kv_blocks"] for leap in run.leaps] == [2, 2, 3, 3]


def test_a_horizon_cuts_a_batch() -> None:
    run = serve((0.0, 1, 9), (0.0, 1, 2), (0.0, 1, 1), horizon_s=3.5)
    assert [row["generated"] for row in run.by_id] == [3, 2, 0]
    assert [row["status"] for row in run.by_id] == [RUNNING, 0, QUEUED]
