"""The oracle against step tables computed by hand.

Every step takes 1 s, + 0.01 s per token that its decodes read, + 0.1 s per new and 0.02 s per cached token
of its chunks. The notation of the tables is explained in :mod:`tests.oracle.tables`.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.costs import AffineStepTime
from tests.oracle.client import EARLY_S, Sent
from tests.oracle.cluster import Run, serve, serve_disaggregated
from tests.oracle.continuous import Continuous
from tests.oracle.job import Job
from tests.oracle.static import Static
from tests.oracle.tables import assert_follows

STEP_TIME = AffineStepTime(step_s=1.0, context_s=0.01, prefill_token_s=0.1, cached_token_s=0.02)
ROOMY = {"max_num_seqs": 8, "max_num_batched_tokens": 64, "enable_prefix_caching": False}


def continuous(*requests: Sent, max_model_len: int = 64, **limits: Any) -> Run:
    return serve(requests, Continuous, STEP_TIME, max_model_len=max_model_len, **{**ROOMY, **limits})


def parts(job: Job) -> dict[str, float]:
    names = ("queue_s", "prefill_s", "preempted_s", "transfer_s", "decode_queue_s")
    return {name: getattr(job, name) for name in names if getattr(job, name) > 1e-9}


def by_name(run: Run) -> dict[str, Job]:
    return {chr(ord("A") + job.id): job for job in run.finished}


def test_two_requests_share_a_batch() -> None:
    """Blocks of 4. A: sent at 0, 4 in, 3 out. B: sent at 0.5, 2 in, 2 out; it joins at the next boundary.

    start | scheduled | duration                | blocks | waiting | preempted
    0.00  | A:4+0     | 1.40                    | 1      | 0       | 0
    1.40  | A:5 B:2+0 | 1.25                    | 3      | 0       | 0
    2.65  | A:6 B:3   | 1.09                    | 3      | 0       | 0

    (1 + .4; 1 + .05 + .2; 1 + .06 + .03. Blocks: A's fifth token begins its second.)

    A emits at 1.40, 2.65, 3.74
    B emits at 2.65, 3.74
    """
    run = continuous((0.0, 4, 3), (0.5, 2, 2), kv_blocks=10, block_size=4)
    assert_follows(run, test_two_requests_share_a_batch)
    assert [job.id for job in run.finished] == [0, 1]
    assert parts(by_name(run)["A"]) == pytest.approx({"prefill_s": 1.4})
    assert parts(by_name(run)["B"]) == pytest.approx({"queue_s": 0.9, "prefill_s": 1.25})


def test_arrivals_beside_a_boundary() -> None:
    """Blocks of 4. A: sent at 0, 2 in, 4 out. B: sent 0.05 us after the boundary at 1.20, 1 in, 1 out: it
    still joins there. C: sent 0.2 us after the boundary at 2.33, 1 in, 1 out: it joins one step later.

    start | scheduled | duration | blocks | waiting | preempted
    0.00  | A:2+0     | 1.20     | 1      | 0       | 0
    1.20  | A:3 B:1+0 | 1.13     | 2      | 0       | 0
    2.33  | A:4       | 1.04     | 1      | 0       | 0
    3.37  | A:5 C:1+0 | 1.15     | 3      | 0       | 0

    (1 + .2; 1 + .03 + .1; 1 + .04; 1 + .05 + .1)

    A emits at 1.20, 2.33, 3.37, 4.52
    B emits at 2.33
    C emits at 4.52
    """
    run = continuous((0.0, 2, 4), (1.2 + 5e-8, 1, 1), (2.33 + 2e-7, 1, 1), kv_blocks=10, block_size=4)
    assert_follows(run, test_arrivals_beside_a_boundary)
    assert by_name(run)["B"].queue_s == 0.0
    assert by_name(run)["C"].queue_s == pytest.approx(1.04 - 2e-7, abs=1e-9)


def test_a_prompt_in_chunks_beside_a_decode() -> None:
    """A budget of 4 tokens, blocks of 4. All sent at 0. A: 2 in, 4 out. B: 6 in, 1 out. C: 1 in, 1 out.

    start | scheduled         | duration | blocks | waiting | preempted
    0.00  | A:2+0 B:2+0       | 1.40     | 2      | 1       | 0
    1.40  | A:3 B:3+2         | 1.37     | 3      | 1       | 0
    2.77  | A:4 B:1+5 C:1+0   | 1.34     | 4      | 0       | 0
    4.11  | A:5               | 1.05     | 2      | 0       | 0

    (1 + .4; 1 + .03 + .3 + .04; 1 + .04 + .2 + .1; 1 + .05. B's chunks are what the budget leaves: 2, then
    4 - 1; its last token leaves room for C.)

    A emits at 1.40, 2.77, 4.11, 5.16
    B emits at 4.11
    C emits at 4.11
    """
    run = continuous(
        (0.0, 2, 4), (0.0, 6, 1), (0.0, 1, 1), kv_blocks=10, block_size=4, max_num_batched_tokens=4
    )
    assert_follows(run, test_a_prompt_in_chunks_beside_a_decode)
    assert [job.id for job in run.finished] == [1, 2, 0]
    assert parts(by_name(run)["B"]) == pytest.approx({"prefill_s": 4.11})
    assert parts(by_name(run)["C"]) == pytest.approx({"queue_s": 2.77, "prefill_s": 1.34})


def test_preemption_and_recompute() -> None:
    """4 blocks of 2. Both sent at 0, 3 in, 4 out.

    start | scheduled   | duration | blocks | waiting | preempted
    0.00  | A:3+0 B:3+0 | 1.60     | 4      | 0       | 0
    1.60  | A:4 B:4     | 1.08     | 4      | 0       | 0
    2.68  | A:5         | 1.05     | 3      | 1       | 1
    3.73  | A:6         | 1.06     | 3      | 1       | 0
    4.79  | B:5+0       | 1.50     | 3      | 0       | 0
    6.29  | B:6         | 1.06     | 3      | 0       | 0

    At 2.68 A's fifth token needs a third block: B, the last, is preempted, and not admitted again in that
    step. At 3.73 its 3 + 2 tokens would need three blocks and one is free. At 4.79 A has finished.

    A emits at 1.60, 2.68, 3.73, 4.79
    B emits at 1.60, 2.68, 6.29, 7.35
    """
    run = continuous((0.0, 3, 4), (0.0, 3, 4), kv_blocks=4, block_size=2)
    assert_follows(run, test_preemption_and_recompute)
    job = by_name(run)["B"]
    assert job.preemptions == 1
    assert parts(job) == pytest.approx({"prefill_s": 1.6, "preempted_s": 6.29 - 2.68})


def test_prefix_caching_keeps_what_nobody_takes() -> None:
    """As before, with prefix caching, and B has 4 in. 4 blocks of 2, numbered from 0.

    start | scheduled   | duration | blocks | waiting | preempted
    0.00  | A:3+0 B:4+0 | 1.70     | 4      | 0       | 0
    1.70  | A:4         | 1.04     | 2      | 1       | 1
    2.74  | A:5         | 1.05     | 3      | 1       | 0
    3.79  | A:6         | 1.06     | 3      | 1       | 0
    4.85  | B:3+2       | 1.34     | 3      | 0       | 0
    6.19  | B:6         | 1.06     | 3      | 0       | 0
    7.25  | B:7         | 1.07     | 4      | 0       | 0

    A has blocks 0 and 1, B has 2 and 3. At 1.70 B's fifth token needs a third block: B itself is the last,
    and gives back 3, then 2. At 2.74 B's 4 + 1 tokens would have two cached blocks and need a third, with
    two free: no. A's fifth token takes block 3, the head of the queue, and B's last two tokens are lost. At
    4.85 A has finished and given back 3, 1 and 0 behind 2: B finds 2, takes 3 and 1, and computes 3 of its
    5 tokens behind 2.

    A emits at 1.70, 2.74, 3.79, 4.85
    B emits at 1.70, 6.19, 7.25, 8.32
    """
    run = continuous((0.0, 3, 4), (0.0, 4, 4), kv_blocks=4, block_size=2, enable_prefix_caching=True)
    assert_follows(run, test_prefix_caching_keeps_what_nobody_takes)
    assert [by_name(run)[name].cached_tokens for name in "AB"] == [0, 2]


def test_swapped_blocks_come_back() -> None:
    """4 blocks of 2, and 2 on the host; a copy lasts 0.25 s. Both sent at 0. A: 3 in, 4 out. B: 4 in, 4 out.

    start | scheduled   | duration | blocks | waiting | preempted
    0.00  | A:3+0 B:4+0 | 1.70     | 4      | 0       | 0
    1.70  | A:4         | 1.54     | 2      | 1       | 1
    3.24  | A:5         | 1.05     | 3      | 1       | 0
    4.29  | A:6         | 1.06     | 3      | 1       | 0
    5.35  | B:1+4       | 1.68     | 3      | 0       | 0
    7.03  | B:6         | 1.06     | 3      | 0       | 0
    8.09  | B:7         | 1.07     | 4      | 0       | 0

    At 1.70 B's fifth token finds no block: its two are copied out before A's token is computed. At 3.24 and
    4.29 it needs three blocks, and one is free. At 5.35 two blocks are copied back before its one missing
    token. (1 + .3 + .4; 1 + .04 + 2 x .25; 1 + .1 + .08 + 2 x .25)

    A emits at 1.70, 3.24, 4.29, 5.35
    B emits at 1.70, 7.03, 8.09, 9.16
    """
    swapping = {"swap_blocks": 2, "swap_block_s": 0.25}
    run = continuous((0.0, 3, 4), (0.0, 4, 4), kv_blocks=4, block_size=2, **swapping)
    assert_follows(run, test_swapped_blocks_come_back)
    assert run.swaps == [(2, 0), (0, 2)]


def test_a_prompt_preempts_itself() -> None:
    """4 blocks of 2, a budget of 4 tokens. Both sent at 0. A: 2 in, 3 out. B: 5 in, 1 out.

    start | scheduled   | duration | blocks | waiting | preempted
    0.00  | A:2+0 B:2+0 | 1.40     | 2      | 0       | 0
    1.40  | A:3         | 1.03     | 2      | 1       | 1
    2.43  | A:4 B:3+0   | 1.34     | 4      | 0       | 0
    3.77  | B:2+3       | 1.26     | 3      | 0       | 0

    At 1.40 A takes its second block; B's three tokens need two more and one is free, and B is the last
    itself. (1 + .04 + .3; 1 + .2 + .06)

    A emits at 1.40, 2.43, 3.77
    B emits at 5.03
    """
    run = continuous((0.0, 2, 3), (0.0, 5, 1), kv_blocks=4, block_size=2, max_num_batched_tokens=4)
    assert_follows(run, test_a_prompt_preempts_itself)
    assert parts(by_name(run)["B"]) == pytest.approx({"preempted_s": 1.03, "prefill_s": 4.0})


def test_whole_prompts_only() -> None:
    """Chunked prefill off, a budget of 8 tokens, blocks of 4. All sent at 0. A: 3 in, 3 out. B: 6 in, 1 out.
    C: 2 in, 1 out.

    start | scheduled | duration | blocks | waiting | preempted
    0.00  | A:3+0     | 1.30     | 1      | 2       | 0
    1.30  | A:4 B:6+0 | 1.64     | 3      | 1       | 0
    2.94  | A:5 C:2+0 | 1.25     | 3      | 0       | 0

    B's 6 tokens do not fit beside A's 3, and C does not overtake it; then C's 2 do not fit beside 1 + 6.

    A emits at 1.30, 2.94, 4.19
    B emits at 2.94
    C emits at 4.19
    """
    run = continuous(
        (0.0, 3, 3),
        (0.0, 6, 1),
        (0.0, 2, 1),
        kv_blocks=10,
        block_size=4,
        max_model_len=8,
        max_num_batched_tokens=8,
        enable_chunked_prefill=False,
    )
    assert_follows(run, test_whole_prompts_only)
    assert parts(by_name(run)["C"]) == pytest.approx({"queue_s": 2.94, "prefill_s": 1.25})


def test_long_prompts_are_dropped_and_long_outputs_capped() -> None:
    """At most 8 tokens. A: sent at 0, 8 in: dropped. B: sent at 1, 6 in, 5 out: capped at 2.

    start | scheduled | duration | blocks | waiting | preempted
    1.00  | B:6+0     | 1.60     | 2      | 0       | 0
    2.60  | B:7       | 1.07     | 2      | 0       | 0

    B emits at 2.60, 3.67
    """
    run = continuous((0.0, 8, 1), (1.0, 6, 5), kv_blocks=10, block_size=4, max_model_len=8)
    assert_follows(run, test_long_prompts_are_dropped_and_long_outputs_capped)
    assert [job.id for job in run.dropped] == [0]


def test_static_batches_pad_time_out_and_shrink() -> None:
    """Batches of 2, a timeout of 5 s, 6 blocks of 4. A: sent at 0, 2 in, 3 out. B: at 1, 5 in, 1 out.
    C: at 2, 3 in, 2 out. D: at 7.5, 4 in, 4 out. E: at 8, 9 in, 4 out.

    start | scheduled   | duration | blocks | waiting | preempted
    1.00  | A:5+0 B:5+0 | 2.00     | 4      | 0       | 0
    3.00  | A:6 (B:6)   | 1.12     | 4      | 1       | 0
    4.12  | A:7 (B:7)   | 1.14     | 4      | 1       | 0
    7.00  | C:3+0       | 1.30     | 2      | 0       | 0
    8.30  | C:4         | 1.04     | 2      | 2       | 0
    9.34  | D:4+0       | 1.40     | 2      | 1       | 0
    10.74 | D:5         | 1.05     | 2      | 1       | 0
    11.79 | D:6         | 1.06     | 2      | 1       | 0
    12.85 | D:7         | 1.07     | 2      | 1       | 0
    13.92 | E:9+0       | 1.90     | 4      | 0       | 0
    15.82 | E:10        | 1.10     | 4      | 0       | 0
    16.92 | E:11        | 1.11     | 4      | 0       | 0
    18.03 | E:12        | 1.12     | 4      | 0       | 0

    The second request fills the batch: it starts at 1, padded to 5 in and 3 out, two blocks each. C waits for
    a second until 2 + 5. D and E wait at 9.34, but 2 x ceil((9 + 4)/4) = 8 blocks are more than 6: D goes
    alone. At 13.92 E has waited for more than 5 s.

    A emits at 3.00, 4.12, 5.26
    B emits at 3.00
    C emits at 8.30, 9.34
    D emits at 10.74, 11.79, 12.85, 13.92
    E emits at 15.82, 16.92, 18.03, 19.15
    """
    run = serve(
        [(0.0, 2, 3), (1.0, 5, 1), (2.0, 3, 2), (7.5, 4, 4), (8.0, 9, 4)],
        Static,
        STEP_TIME,
        max_model_len=24,
        kv_blocks=6,
        block_size=4,
        batch_size=2,
        batch_timeout_s=5.0,
    )
    assert_follows(run, test_static_batches_pad_time_out_and_shrink)
    assert [job.id for job in run.finished] == [1, 0, 2, 3, 4]
    assert parts(by_name(run)["A"]) == pytest.approx({"queue_s": 1.0, "prefill_s": 2.0})
    assert parts(by_name(run)["E"]) == pytest.approx({"queue_s": 5.92, "prefill_s": 1.9})


def disaggregated(*requests: Sent, **options: Any) -> Run:
    options = {"max_model_len": 64, "transfer_s": 0.5, "block_size": 2, **ROOMY, **options}
    return serve_disaggregated(requests, STEP_TIME, STEP_TIME, **options)


def test_hand_off_with_the_first_token_from_decode() -> None:
    """Blocks of 2, transfers of 0.5 s. Replica 0 prefills, 1 decodes. A: sent at 0, 4 in, 3 out.
    B: sent at 0, 2 in, 1 out.

    replica | start | scheduled   | duration | blocks | waiting | preempted
    0       | 0.00  | A:4+0 B:2+0 | 1.60     | 3      | 0       | 0
    1       | 2.10  | A:1+3 B:1+1 | 1.28     | 3      | 0       | 0
    1       | 3.38  | A:5         | 1.05     | 3      | 0       | 0
    1       | 4.43  | A:6         | 1.06     | 3      | 0       | 0

    Both leave at 1.60 without a token, are reserved two blocks and one, and land at 2.10. The decode
    replica computes each prompt's last token again (1 + .2 + .06 + .02).

    A emits at 3.38, 4.43, 5.49
    B emits at 3.38
    """
    run = disaggregated((0.0, 4, 3), (0.0, 2, 1), first_token="decode", prefill_blocks=3, decode_blocks=10)
    assert_follows(run, test_hand_off_with_the_first_token_from_decode)
    assert parts(by_name(run)["A"]) == pytest.approx(
        {"prefill_s": 1.6, "transfer_s": 0.5, "decode_queue_s": 2 * EARLY_S}
    )


def test_hand_off_with_the_first_token_from_prefill() -> None:
    """As before, but token 1 leaves at the end of prefill: B is done, and A is reserved three blocks, for
    4 + 1 tokens.

    replica | start | scheduled   | duration | blocks | waiting | preempted
    0       | 0.00  | A:4+0 B:2+0 | 1.60     | 3      | 0       | 0
    1       | 2.10  | A:1+4       | 1.18     | 3      | 0       | 0
    1       | 3.28  | A:6         | 1.06     | 3      | 0       | 0

    A emits at 1.60, 3.28, 4.34
    B emits at 1.60
    """
    run = disaggregated((0.0, 4, 3), (0.0, 2, 1), first_token="prefill", prefill_blocks=3, decode_blocks=10)
    assert_follows(run, test_hand_off_with_the_first_token_from_prefill)
    assert [(job.id, job.prefill_replica, job.replica) for job in run.finished] == [(1, 0, -1), (0, 0, 1)]
    assert parts(by_name(run)["B"]) == pytest.approx({"prefill_s": 1.6})


def test_back_pressure_reaches_prefill() -> None:
    """4 prefill blocks and 3 decode blocks of 2, transfers of 0.5 s. All sent at 0. A: 4 in, 2 out. B: 4 in,
    1 out. C: 2 in, 1 out.

    replica | start | scheduled   | duration | blocks | waiting | preempted
    0       | 0.00  | A:4+0 B:4+0 | 1.80     | 4      | 1       | 0
    0       | 2.30  | C:2+0       | 1.20     | 3      | 0       | 0
    1       | 2.30  | A:1+3       | 1.16     | 2      | 1       | 0
    1       | 3.46  | A:5         | 1.05     | 3      | 1       | 0
    1       | 5.01  | B:1+3 C:1+1 | 1.28     | 3      | 0       | 0

    At 1.80 the decode replica has room for A's two blocks, not for B's. B keeps its prefill blocks, and C
    waits until A has landed at 2.30 and given back its own. At 4.51 A finishes: B and C are reserved three
    blocks, and land at 5.01.

    A emits at 3.46, 4.51
    B emits at 6.29
    C emits at 6.29
    """
    run = disaggregated(
        (0.0, 4, 2), (0.0, 4, 1), (0.0, 2, 1), first_token="decode", prefill_blocks=4, decode_blocks=3
    )
    assert_follows(run, test_back_pressure_reaches_prefill)
    assert parts(by_name(run)["B"]) == pytest.approx(
        {"prefill_s": 1.8, "transfer_s": 0.5, "decode_queue_s": 4.51 - 1.8 + 3 * EARLY_S}
    )
    assert parts(by_name(run)["C"]) == pytest.approx(
        {
            "queue_s": 2.3 + EARLY_S,
            "prefill_s": 1.2,
            "transfer_s": 0.5,
            "decode_queue_s": 4.51 - 3.5 + 2 * EARLY_S,
        }
    )


def test_a_prompt_preempted_in_prefill_starts_again_only_as_a_whole() -> None:
    """4 prefill blocks of 2, a budget of 4 tokens, transfers of 0.5 s. Both sent at 0. A: 3 in, 1 out.
    B: 5 in, 1 out.

    replica | start | scheduled   | duration | blocks | waiting | preempted
    0       | 0.00  | A:3+0 B:1+0 | 1.40     | 3      | 0       | 0
    0       | 1.90  | B:4+0       | 1.40     | 2      | 0       | 1
    0       | 3.30  | B:1+4       | 1.18     | 3      | 0       | 0
    1       | 1.90  | A:1+2       | 1.14     | 2      | 0       | 0
    1       | 4.98  | B:1+4       | 1.18     | 3      | 0       | 0

    At 1.40 A leaves but keeps two blocks; B's next four tokens need two more and one is free: it preempts
    itself. A chunk of four would fit into the two free blocks now, but all five tokens need three: B waits
    until A has landed at 1.90.

    A emits at 3.04
    B emits at 6.16
    """
    run = disaggregated(
        (0.0, 3, 1),
        (0.0, 5, 1),
        first_token="decode",
        prefill_blocks=4,
        decode_blocks=10,
        max_num_batched_tokens=4,
    )
    assert_follows(run, test_a_prompt_preempted_in_prefill_starts_again_only_as_a_whole)
    assert parts(by_name(run)["B"])["preempted_s"] == pytest.approx(0.5 + EARLY_S)
    assert parts(by_name(run)["B"])["prefill_s"] == pytest.approx(4.48 - 0.5)


def test_preemption_on_the_decode_replica() -> None:
    """6 prefill blocks and 4 decode blocks of 2, transfers of 0.5 s, token 1 from prefill. A and B: sent at
    0, 3 in, 3 out. C: sent at 1.6, 1 in, 2 out.

    replica | start | scheduled   | duration | blocks | waiting | preempted
    0       | 0.00  | A:3+0 B:3+0 | 1.60     | 4      | 0       | 0
    0       | 1.60  | C:1+0       | 1.10     | 5      | 0       | 0
    1       | 2.10  | A:1+3 B:1+3 | 1.32     | 4      | 0       | 0
    1       | 3.42  | A:5         | 1.05     | 3      | 2       | 1
    1       | 4.47  | B:5+0       | 1.50     | 4      | 0       | 0
    1       | 5.97  | C:1+1       | 1.12     | 1      | 0       | 0

    At 3.42 A needs a third block: B is preempted. C's one block is free then, but it may not overtake B. At
    4.47 B recomputes its 3 + 2 tokens in three blocks, and the fourth is reserved for C, which lands at 4.97.

    A emits at 1.60, 3.42, 4.47
    B emits at 1.60, 3.42, 5.97
    C emits at 2.70, 7.09
    """
    run = disaggregated(
        (0.0, 3, 3), (0.0, 3, 3), (1.6, 1, 2), first_token="prefill", prefill_blocks=6, decode_blocks=4
    )
    assert_follows(run, test_preemption_on_the_decode_replica)
    assert parts(by_name(run)["B"])["preempted_s"] == pytest.approx(5.97 - 3.42)
    waits_s = (4.47 - 2.70) + (5.97 - 4.97)
    assert parts(by_name(run)["C"])["decode_queue_s"] == pytest.approx(waits_s, abs=1e-6)
