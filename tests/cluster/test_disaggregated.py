"""From a prefill replica to a decode replica. Every step takes 1 s; a token's KV is a byte."""

from __future__ import annotations

from typing import Any

import pytest

from servesim.cluster.disaggregated import Disaggregated
from servesim.cluster.router import LeastOutstanding
from servesim.engine.clock import EARLY_S
from tests.costs import constant_step
from tests.serving import Row, Run, Sent, Service

#: Messages between replicas take 0.1 us each.
HAIR_S = 4 * EARLY_S


def serve(*requests: Sent, first_token: str = "decode", max_num_seqs: int = 64, **service: Any) -> Run:
    """Serve requests with one replica for each half, blocks of four, and transfers of 10 bytes/s."""
    scheduler = Disaggregated(block_size=4, first_token=first_token, max_num_seqs=max_num_seqs)
    options = {"bytes_per_s": 10.0, **service}
    step_time = constant_step(1.0)
    return Service(scheduler, step_time, decode_step_time=step_time, **options).serve(requests)


def steps(run: Run, replica: int) -> list[Row]:
    """Return the leaps of a replica."""
    return [leap for leap in run.leaps if leap["replica"] == replica]


# ---- where the first token leaves ------------------------------------------------------------------


def test_decode_recomputes_the_last_position_and_emits_token_one() -> None:
    """Prefill to 1, transfer of 20 bytes to 3, then three steps for three tokens: a chunk of one, decodes."""
    run = serve((0.0, 20, 3))
    (row,) = run.by_id
    assert (row["first_token_s"], row["finished_s"]) == pytest.approx((4.0, 6.0), abs=HAIR_S)
    first, rest = steps(run, replica=1)
    assert (first["prefill_tokens"], first["context_tokens"], first["decodes"]) == (1, 20, 0)
    assert (rest["steps"], rest["context_tokens"], rest["decodes"]) == (2, 21, 1)
    assert run.gaps == []


def test_prefill_emits_token_one() -> None:
    """Token 1 at 1, transfer to 3, tokens 2 and 3 at 4 and 5: the gap before token 2 is 3 s long."""
    run = serve((0.0, 20, 3), first_token="prefill")
    (row,) = run.by_id
    assert (row["first_token_s"], row["finished_s"]) == pytest.approx((1.0, 5.0), abs=HAIR_S)
    first, rest = steps(run, replica=1)
    assert (first["prefill_tokens"], first["context_tokens"]) == (1, 21)
    assert first["kv_blocks"] == 6, "room for the prompt and token 1"
    assert (rest["steps"], rest["context_tokens"]) == (1, 22)
    assert [gap["gap_s"] for gap in run.gaps] == pytest.approx([3.0], abs=HAIR_S)


def test_an_output_of_one_token_never_leaves_the_prefill_pool() -> None:
    run = serve((0.0, 20, 1), first_token="prefill")
    (row,) = run.by_id
    assert (row["prefill_replica"], row["replica"], row["finished_s"]) == (0, -1, 1.0)
    assert (row["transfer_s"], row["decode_queue_s"]) == (0.0, 0.0)
    assert steps(run, replica=1) == []


def test_an_output_of_one_token_from_the_decode_pool() -> None:
    (row,) = serve((0.0, 20, 1)).by_id
    assert (row["prefill_replica"], row["replica"]) == (0, 1)
    assert row["first_token_s"] == row["finished_s"] == pytest.approx(4.0, abs=HAIR_S)


def test_parts_of_a_hand_over() -> None:
    (row,) = serve((0.0, 20, 3)).by_id
    assert row["queue_s"] == 0.0
    assert row["prefill_s"] == 1.0
    assert row["transfer_s"] == pytest.approx(2.0)
    assert row["decode_queue_s"] == pytest.approx(0.0, abs=HAIR_S)


# ---- who holds what --------------------------------------------------------------------------------


def test_prefill_holds_its_blocks_until_the_last_byte_has_landed() -> None:
    """Five blocks, all taken by the first prompt until 3; the second is prefilled from then on."""
    run = serve((0.0, 20, 3), (0.0, 20, 3), kv_blocks=5)
    assert run.by_id[1]["queue_s"] == pytest.approx(3.0, abs=HAIR_S)


def test_room_is_reserved_before_the_transfer_starts() -> None:
    """Of seven blocks the first request has five, then six, to its end at 6.

    The second, whose prompt is computed at 1 as well, waits so long for five, and is in transfer to 8.
    """
    run = serve((0.0, 20, 3), (0.0, 20, 3), decode_blocks=7)
    second = run.by_id[1]
    assert second["decode_queue_s"] == pytest.approx(5.0, abs=HAIR_S)
    assert second["transfer_s"] == pytest.approx(2.0)
    assert second["first_token_s"] == pytest.approx(9.0, abs=HAIR_S)


def test_a_full_decode_pool_holds_prefill_back() -> None:
    """Five blocks for prefill: the third prompt is not let in before the second has landed at 8."""
    run = serve(*[(0.0, 20, 3)] * 3, kv_blocks=5, decode_blocks=7)
    assert run.by_id[1]["queue_s"] == pytest.approx(3.0, abs=HAIR_S)
    assert run.by_id[2]["queue_s"] == pytest.approx(8.0, abs=HAIR_S)


def test_two_hand_overs_share_the_link() -> None:
    """Twenty bytes each, together at 5 bytes/s: four seconds instead of two."""
    run = serve((0.0, 20, 3), (0.0, 20, 3))
    assert [row["transfer_s"] for row in run.by_id] == pytest.approx([4.0, 4.0])


def test_who_has_landed_waits_for_a_slot() -> None:
    """One slot each. The prompts are computed at 1 and at 2, and share the link from 2 on.

    By then the first has moved 10 bytes of 20; at 5 bytes/s the others are there at 4, and it decodes to 14.
    The second has 10 bytes left at 4, and lands at 5: it waits for 9 s.
    """
    _, second = serve((0.0, 20, 10), (0.0, 20, 1), max_num_seqs=1).by_id
    assert second["queue_s"] == 1.0
    assert second["transfer_s"] == pytest.approx(3.0)
    assert second["decode_queue_s"] == pytest.approx(9.0, abs=HAIR_S)


def test_a_preempted_request_is_recomputed_on_its_decode_replica() -> None:
    """Seven blocks of four: two requests of 9 in, 9 out grow to 17 tokens, five blocks each.

    The second is thrown out, and is recomputed where it was: no second transfer, no step of the prefill pool.
    """
    run = serve((0.0, 9, 9), (0.0, 9, 9), decode_blocks=7)
    assert [row["preemptions"] for row in run.by_id] == [0, 1]
    assert len(steps(run, replica=0)) == 1
    assert run.by_id[1]["transfer_s"] == pytest.approx(1.8)
    recompute = [leap for leap in steps(run, replica=1) if leap["prefill_tokens"] > 2]
    assert len(recompute) == 1


# ---- several replicas ------------------------------------------------------------------------------


def test_replicas_are_numbered_through() -> None:
    """Two prefill replicas come first; each pool takes turns of its own."""
    run = serve(*[(0.0, 4, 2)] * 4, replicas=2, decode_replicas=3)
    assert [row["prefill_replica"] for row in run.by_id] == [0, 1, 0, 1]
    assert sorted(row["replica"] for row in run.by_id) == [2, 2, 3, 4]


def test_a_request_counts_at_its_prefill_replica_until_it_has_landed() -> None:
    """Least outstanding: at 2 the first request is still in transfer, so the third goes to the other replica.

    The second, with one token of prompt, has landed at 1.2; at 3.5 the first has, too.
    """
    requests = (0.0, 20, 9), (0.0, 1, 9), (2.0, 20, 9), (3.5, 1, 1)
    run = serve(*requests, replicas=2, decode_replicas=2, router=LeastOutstanding())
    assert [row["prefill_replica"] for row in run.by_id] == [0, 1, 1, 0]
