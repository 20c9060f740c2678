"""The halves of a disaggregated deployment, as engines: what each lets in, and when. Steps take 1 s."""

from __future__ import annotations

import pytest

from servesim.cluster.disaggregated import Disaggregated
from servesim.engine.clock import EARLY_S
from servesim.engine.log import RUNNING
from tests.costs import constant_step
from tests.serving import Run, Sent, Service

HAIR_S = 4 * EARLY_S


def serve(
    *requests: Sent, horizon_s: float | None = None, prefix_caching: bool = True, **options: float
) -> Run:
    """Serve requests with one replica for each half: blocks of four, steps of at most eight tokens."""
    scheduler = Disaggregated(
        block_size=4,
        max_num_batched_tokens=8,
        first_token="prefill",
        enable_prefix_caching=prefix_caching,
    )
    step_time = constant_step(1.0)
    service = Service(scheduler, step_time, decode_step_time=step_time, **options)
    return service.serve(requests, horizon_s=horizon_s)


def test_a_prompt_that_was_thrown_out_is_let_in_again_as_a_whole() -> None:
    """Five blocks. A: 4 in. B: 20 in, in chunks of 4 (beside A), 8 and 8.

    A is computed at 1 and keeps its block until 6, when its transfer of 5 s has landed. At 2 B has three
    blocks and needs two more, but one is free: it loses all it has. Four blocks are free then, enough for a
    chunk, not for B: it waits until 6, and is computed at 9.
    """
    run = serve((0.0, 4, 2), (0.0, 20, 1), kv_blocks=5, latency_s=5.0, prefix_caching=False)
    row = run.by_id[1]
    assert row["preemptions"] == 1
    assert row["preempted_s"] == pytest.approx(4.0, abs=HAIR_S)
    assert row["prefill_s"] == pytest.approx(5.0, abs=HAIR_S)
    assert [leap["prefill_tokens"] for leap in run.leaps if leap["replica"] == 0] == [8, 8, 8, 8, 4]


def test_a_prompt_that_was_thrown_out_finds_its_blocks_again() -> None:
    """As above, with prefix caching: nobody has taken B's three blocks by 6; it computes 8 tokens more."""
    run = serve((0.0, 4, 2), (0.0, 20, 1), kv_blocks=5, latency_s=5.0)
    row = run.by_id[1]
    assert (row["preemptions"], row["cached_tokens"]) == (1, 12)
    assert row["preempted_s"] == pytest.approx(4.0, abs=HAIR_S)
    assert row["prefill_s"] == pytest.approx(3.0, abs=HAIR_S)
    assert [leap["prefill_tokens"] for leap in run.leaps if leap["replica"] == 0] == [8, 8, 8]


def test_nobody_overtakes_a_request_that_was_thrown_out_of_decode() -> None:
    """Five blocks for decode. A: 8 in, 6 out. B: 7 in, 6 out. C: 1 in, 2 out, sent at 3. 1 ms per byte.

    A lands at 1.008 with three blocks, B with two while the step up to 3.008 runs. At 4.008 B's ninth token
    needs a third block: B is thrown out, the last one in. C, computed at 4, needs one block and two are free,
    but B goes first: only when A has finished at 6.008 both move. C lands at 6.009 and joins at 7.008.
    """
    run = serve((0.0, 8, 6), (0.0, 7, 6), (3.0, 1, 2), decode_blocks=5, bytes_per_s=1000.0)
    assert [row["preemptions"] for row in run.by_id] == [0, 1, 0]
    assert run.by_id[0]["finished_s"] == pytest.approx(6.008, abs=HAIR_S)
    assert run.by_id[2]["transfer_s"] == pytest.approx(0.001)
    assert run.by_id[2]["decode_queue_s"] == pytest.approx(6.008 - 4.0 + 7.008 - 6.009, abs=HAIR_S)


def test_a_horizon_keeps_what_each_half_has_done() -> None:
    """At 2.5 the first request has a token from prefill and one from decode; the second is half prefilled."""
    run = serve((0.0, 8, 9), (0.0, 12, 9), horizon_s=2.5, bytes_per_s=1e9)
    assert [row["status"] for row in run.by_id] == [RUNNING, RUNNING]
    assert [row["generated"] for row in run.by_id] == [2, 0]
