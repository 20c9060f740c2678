"""Continuous batching, one rule at a time. Every step takes 1 s, unless a test says otherwise."""

from __future__ import annotations

from dataclasses import replace

import pytest

from servesim.engine.clock import StalledError
from servesim.engine.continuous import Continuous
from servesim.engine.log import QUEUED, RUNNING
from tests.costs import AffineStepTime, constant_step
from tests.serving import Run, Sent, Service


def serve(*requests: Sent, kv_blocks: int = 1000, horizon_s: float | None = None, **limits: object) -> Run:
    """Serve requests by one replica."""
    scheduler = replace(Continuous(block_size=4), **limits)
    return Service(scheduler, constant_step(1.0), kv_blocks).serve(requests, horizon_s=horizon_s)


def finishes(run: Run) -> list[float]:
    """Return when each request finished, in the order of sending."""
    return [row["finished_s"] for row in run.by_id]


def batches(run: Run) -> list[tuple[float, ...]]:
    """Return (steps, sequences, decodes, prompt tokens) of each leap."""
    names = ("steps", "sequences", "decodes", "prefill_tokens")
    return [tuple(leap[name] for name in names) for leap in run.leaps]


# ---- joining ---------------------------------------------------------------------------------------


def test_an_idle_engine_starts_at_the_sending() -> None:
    """To the last bit, although the arrival is seen 0.1 us early."""
    run = serve((0.3, 5, 2))
    assert run.leaps[0]["start_s"] == 0.3
    assert finishes(run) == [2.3]
    assert run.by_id[0]["queue_s"] == 0.0


def test_one_request_takes_a_prefill_and_a_leap() -> None:
    """The prefill emits token 1, one leap the other 99: two events, however many tokens."""
    run = serve((0.0, 5, 100))
    assert batches(run) == [(1, 1, 0, 5), (99, 1, 1, 0)]
    assert (run.by_id[0]["first_token_s"], finishes(run)) == (1.0, [100.0])


def test_an_arrival_joins_at_the_next_boundary() -> None:
    run = serve((0.0, 5, 10), (4.5, 3, 2))
    assert batches(run) == [(1, 1, 0, 5), (4, 1, 1, 0), (1, 2, 1, 3), (1, 2, 2, 0), (3, 1, 1, 0)]
    assert run.by_id[1]["queue_s"] == 0.5
    assert finishes(run) == [10.0, 7.0]


@pytest.mark.parametrize(
    ("sent_s", "joined_s"), [(5.0, 5.0), (5.0 + 9e-8, 5.0), (5.0 + 2e-7, 6.0), (5.0 - 1e-9, 5.0)]
)
def test_an_arrival_beside_a_boundary(sent_s: float, joined_s: float) -> None:
    """Up to 0.1 us after it still joins, and has not waited then."""
    run = serve((0.0, 5, 10), (sent_s, 3, 1))
    assert run.by_id[1]["finished_s"] == joined_s + 1
    assert run.by_id[1]["queue_s"] == max(joined_s - sent_s, 0.0)


def test_a_burst_shares_its_first_step() -> None:
    run = serve(*[(2.0, 3, 1)] * 5)
    assert batches(run) == [(1, 5, 0, 15)]


# ---- limits of a step ------------------------------------------------------------------------------


def test_slots_limit_the_batch() -> None:
    """Two slots: the third request starts when the first finishes, at 3."""
    run = serve((0.0, 1, 3), (0.0, 1, 9), (0.0, 1, 1), max_num_seqs=2)
    assert finishes(run) == [3.0, 9.0, 4.0]
    assert [leap["waiting"] for leap in run.leaps] == [1, 1, 0, 0]


def test_a_prompt_is_split_into_chunks() -> None:
    """Ten tokens by four: 4, 4, 2, and the third chunk emits."""
    run = serve((0.0, 10, 1), max_num_batched_tokens=4)
    assert [leap["prefill_tokens"] for leap in run.leaps] == [4, 4, 2]
    assert [leap["context_tokens"] for leap in run.leaps] == [4, 8, 10]
    assert [leap["pairs"] for leap in run.leaps] == [10, 4 * 4 + 10, 2 * 8 + 3]
    assert finishes(run) == [3.0]


def test_decodes_come_first_in_the_budget() -> None:
    """A budget of four: beside one decode a chunk has three tokens."""
    run = serve((0.0, 1, 9), (0.5, 7, 1), max_num_batched_tokens=4)
    assert [leap["prefill_tokens"] for leap in run.leaps] == [1, 3, 3, 1, 0]


def test_the_rest_of_a_prompt_leaves_room_for_the_next() -> None:
    run = serve((0.0, 5, 1), (0.0, 6, 1), max_num_batched_tokens=4)
    assert [(leap["prefill_tokens"], leap["sequences"]) for leap in run.leaps] == [(4, 1), (4, 2), (3, 1)]
    assert finishes(run) == [2.0, 3.0]


def test_whole_prompts_wait_for_a_step_of_their_own() -> None:
    """Chunked prefill off, a budget of eight: 5 and 4 do not fit together, and 2 does not overtake 4."""
    run = serve((0.0, 5, 1), (0.0, 4, 1), (0.0, 2, 1), max_num_batched_tokens=8, enable_chunked_prefill=False)
    assert [leap["prefill_tokens"] for leap in run.leaps] == [5, 6]


def test_steps_slow_down_with_their_context() -> None:
    """1 s + 0.1 s per token read: 5 tokens of prompt, then 6, 7 and 8 are read."""
    service = Service(Continuous(), AffineStepTime(step_s=1.0, context_s=0.1))
    run = service.serve([(0.0, 5, 4)])
    assert [leap["steps"] for leap in run.leaps] == [1, 3]
    assert finishes(run) == pytest.approx([1.0 + 1.6 + 1.7 + 1.8])


def test_two_sequences_slow_down_twice_as_fast() -> None:
    """Two requests of 5 tokens: the decode steps read 12, 14 and 16 tokens, and take 2.2, 2.4 and 2.6 s."""
    service = Service(Continuous(), AffineStepTime(step_s=1.0, context_s=0.1))
    run = service.serve([(0.0, 5, 4), (0.0, 5, 4)])
    assert [leap["steps"] for leap in run.leaps] == [1, 3]
    assert finishes(run) == pytest.approx([1.0 + 2.2 + 2.4 + 2.6] * 2)


def test_a_leap_ends_where_the_slope_breaks() -> None:
    """1 s + 0.1 s per token up to 7, then 0.2 s each: reading 6, 7, 8, 9 takes 1.6, 1.7, 1.9, 2.1 s."""
    service = Service(Continuous(), AffineStepTime(step_s=1.0, context_s=0.1, breaks=((7, 0.2),)))
    run = service.serve([(0.0, 5, 5)])
    assert [leap["steps"] for leap in run.leaps] == [1, 2, 2]
    assert finishes(run) == pytest.approx([1.0 + 1.6 + 1.7 + 1.9 + 2.1])


# ---- KV blocks -------------------------------------------------------------------------------------


def test_blocks_are_taken_as_tokens_are_computed() -> None:
    """Blocks of four: three tokens of prompt need one, the fifth token a second, the ninth a third."""
    run = serve((0.0, 3, 8))
    (prefill, decode) = run.leaps
    assert (prefill["kv_blocks"], decode["kv_blocks"], decode["kv_blocks_last"]) == (1, 1, 3)


def test_the_last_token_is_never_in_the_cache() -> None:
    """Four of prompt and five of output: the ninth token is emitted, not computed. Two blocks do."""
    run = serve((0.0, 4, 5), kv_blocks=2)
    assert finishes(run) == [5.0]
    assert run.by_id[0]["preemptions"] == 0
    assert run.engines[0].kv.free == 2


def test_a_prompt_waits_for_its_blocks() -> None:
    """Two blocks of four: 5 tokens have both until the first request ends at 3."""
    run = serve((0.0, 5, 3), (0.5, 1, 1), kv_blocks=2)
    assert finishes(run) == [3.0, 4.0]
    assert [leap["waiting"] for leap in run.leaps] == [0, 1, 0]


def test_the_last_one_in_is_thrown_out() -> None:
    """Three blocks of four; two requests of 4 in, 5 out. At 1 both need a second block, and one is free.

    The second request has emitted its first token at 1. It waits until the first finishes at 5, recomputes
    4 + 1 tokens without prefix caching, and has its second token at 6: the gap is 5 s.
    """
    run = serve((0.0, 4, 5), (0.0, 4, 5), kv_blocks=3, enable_prefix_caching=False)
    assert batches(run) == [(1, 2, 0, 8), (1, 1, 1, 0), (3, 1, 1, 0), (1, 1, 0, 5), (3, 1, 1, 0)]
    assert [leap["preempted"] for leap in run.leaps] == [0, 1, 0, 0, 0]
    row = run.by_id[1]
    assert (row["preemptions"], row["preempted_s"]) == (1, 5.0)
    assert (row["first_token_s"], row["finished_s"]) == (1.0, 9.0)
    assert [(gap["end_s"], gap["gap_s"]) for gap in run.gaps] == [(6.0, 5.0)]


def test_who_was_thrown_out_finds_its_full_blocks_again() -> None:
    """As above, with prefix caching: the first request's second block is the one that was free before.

    So the second request's only block is still there at 5, and of 4 + 1 tokens it computes the last.
    """
    run = serve((0.0, 4, 5), (0.0, 4, 5), kv_blocks=3)
    assert batches(run)[3] == (1, 1, 0, 1)
    assert run.leaps[3]["context_tokens"] == 5
    assert [row["cached_tokens"] for row in run.by_id] == [0, 4]
    assert [row["recovered_tokens"] for row in run.by_id] == [0, 4]
    assert finishes(run) == [5.0, 9.0]


def test_the_end_of_a_request_is_lost_first() -> None:
    """Seven blocks of four. A: 8 in, 13 out. B: 13 in, 2 out, its fourth block for one token.

    At 1 A takes its third block, the last that is free, and B finishes at 2. C, 12 in, 9 out, is let in
    there; at 3 it takes a fourth block, and none is free. At 5 A needs a fourth, and C, the last, is thrown
    out, with 14 tokens in its four blocks: A takes the one for two tokens, and at 9, for its fifth, the one
    before that. At 13 A finishes. C finds its first two blocks again, and computes 7 of 12 + 3 tokens.
    """
    run = serve((0.0, 8, 13), (0.0, 13, 2), (1.5, 12, 9), kv_blocks=7)
    assert [row["preemptions"] for row in run.by_id] == [0, 0, 1]
    assert [row["cached_tokens"] for row in run.by_id] == [0, 0, 8]
    assert [leap["prefill_tokens"] for leap in run.leaps if leap["prefill_tokens"]] == [21, 12, 7]


def test_who_was_thrown_out_goes_before_who_waits() -> None:
    """As above, and a third request of 8 in waits since 0.5. At 5 there is room for one of those who wait."""
    run = serve((0.0, 4, 5), (0.0, 4, 5), (0.5, 8, 1), kv_blocks=3)
    assert finishes(run) == [5.0, 9.0, 10.0]


def test_nobody_is_let_in_where_somebody_was_thrown_out() -> None:
    """At 1 a block is free after the preemption, and a slot; the newcomer is let in one step later."""
    run = serve((0.0, 4, 3), (0.0, 4, 3), (0.0, 1, 1), kv_blocks=3, max_num_seqs=2)
    assert [(leap["sequences"], leap["preempted"]) for leap in run.leaps][:2] == [(2, 0), (1, 1)]


def test_a_request_that_fits_nowhere_stalls() -> None:
    """Five tokens, one block of four, and nothing that would drop it: an error, not an endless loop."""
    with pytest.raises(StalledError, match="replica 0 preempts without end"):
        serve((0.0, 5, 2), kv_blocks=1, max_num_batched_tokens=4, enable_prefix_caching=False)


# ---- being cut -------------------------------------------------------------------------------------


def test_a_horizon_keeps_the_tokens_that_are_out() -> None:
    """At 4.5 four steps have ended; the fifth leaves no trace. A third request has come too late to start."""
    run = serve((0.0, 5, 100), (0.0, 5, 100), (4.2, 5, 1), horizon_s=4.5)
    assert [row["generated"] for row in run.by_id] == [4, 4, 0]
    assert [row["status"] for row in run.by_id] == [RUNNING, RUNNING, QUEUED]
    assert batches(run) == [(1, 2, 0, 10), (3, 2, 2, 0)]


def test_a_horizon_on_a_boundary_counts_that_step() -> None:
    run = serve((0.0, 5, 100), horizon_s=4.0)
    assert [row["generated"] for row in run.by_id] == [4]
