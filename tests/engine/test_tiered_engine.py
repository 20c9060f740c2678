"""An engine with KV tiers: who is loaded, when, and what it computes then. A token's KV is one byte."""

from __future__ import annotations

import pytest

from servesim.cost.memory import GIB
from servesim.engine.continuous import Continuous
from servesim.engine.log import TIMED_OUT
from servesim.engine.offload import Medium, Offload
from servesim.workload.client import Client
from servesim.workload.origin import Origin
from servesim.workload.request import Request
from tests.costs import AffineStepTime
from tests.serving import Run, Sent, Service

STEP_TIME = AffineStepTime(step_s=1.0, prefill_token_s=0.1)
PROMPT, OTHER = Origin(prefix=((1, 16),)), Origin(prefix=((2, 16),))
AMPLE = 1000 / GIB


def serve(offload: Offload | None, *requests: tuple[Sent, Origin], replicas: int = 1, **limits: int) -> Run:
    """Serve requests with 6 blocks of 4 tokens per replica."""
    sent, origins = zip(*requests, strict=True)
    scheduler = Continuous(block_size=4, offload=offload, **limits)
    return Service(scheduler, STEP_TIME, kv_blocks=6, replicas=replicas, origins=origins).serve(sent)


def test_what_the_gpu_has_lost_is_loaded_and_the_rest_computed() -> None:
    """A at 0, B at 10, A again at 20; B takes the last two of A's four blocks.

    From 10 on these two are written at one byte a second, 8 s and 1 s of latency. At 20 the GPU has two of
    A's blocks, and the third is read: 4 s and 1 s. The fourth has A's last token and is computed: 4 tokens.
    """
    host = Medium(capacity=AMPLE, bandwidth_bytes_per_s=1.0, latency_s=1.0)
    run = serve(Offload(host), ((0.0, 16, 1), PROMPT), ((10.0, 16, 1), OTHER), ((20.0, 16, 1), PROMPT))
    first, other, again = run.by_id
    assert (first["finished_s"], other["finished_s"]) == pytest.approx((2.6, 12.6))
    assert (again["cached_tokens"], again["loaded_tokens"]) == (8, 4)
    assert again["queue_s"] == pytest.approx(4.0 + 1.0, abs=1e-6)
    assert again["first_token_s"] == pytest.approx(20.0 + 5.0 + 1.4, abs=1e-6)


def test_too_few_tokens_are_computed() -> None:
    for least, loaded in ((4, 4), (5, 0)):
        offload = Offload(Medium(capacity=AMPLE), min_load_tokens=least)
        run = serve(offload, ((0.0, 16, 1), PROMPT), ((10.0, 16, 1), OTHER), ((20.0, 16, 1), PROMPT))
        assert run.by_id[2]["loaded_tokens"] == loaded


def test_others_run_while_one_is_loaded() -> None:
    """A is loaded from 20 on for 4 s; what comes at 21 does not wait for it."""
    host = Medium(capacity=AMPLE, bandwidth_bytes_per_s=1.0)
    late = ((21.0, 2, 1), Origin())
    run = serve(Offload(host), ((0.0, 16, 1), PROMPT), ((10.0, 16, 1), OTHER), ((20.0, 16, 1), PROMPT), late)
    assert run.by_id[3]["finished_s"] == pytest.approx(22.2)
    assert run.by_id[2]["finished_s"] == pytest.approx(20.0 + 4.0 + 1.4, abs=1e-6)


def test_a_head_without_room_for_all_of_it_waits() -> None:
    """While 16 + 5 tokens of another have all six blocks, nothing is loaded and nothing overtakes."""
    host = Medium(capacity=AMPLE)
    busy, late = ((20.0, 17, 8), Origin()), ((22.0, 2, 1), Origin())
    run = serve(
        Offload(host), ((0.0, 16, 1), PROMPT), ((10.0, 16, 1), OTHER), busy, ((21.0, 16, 1), PROMPT), late
    )
    ends = [row["finished_s"] for row in run.by_id]
    assert run.by_id[3]["loaded_tokens"] > 0
    assert ends[2] < ends[3]
    assert ends[2] < ends[4]


def test_a_store_is_shared_and_a_host_is_not() -> None:
    """A goes to replica 0, loses blocks there to B, and comes again to replica 1."""
    traffic = [
        ((0.0, 16, 1), PROMPT),
        ((1.0, 2, 1), Origin()),
        ((10.0, 16, 1), OTHER),
        ((11.0, 2, 1), Origin()),
        ((20.0, 17, 1), Origin()),
        ((30.0, 16, 1), PROMPT),
    ]
    loaded = []
    for offload in (
        Offload(host=Medium(AMPLE)),
        Offload(store=Medium(AMPLE)),
        Offload(Medium(0.0), Medium(AMPLE)),
    ):
        run = serve(offload, *traffic, replicas=2)
        assert [row["replica"] for row in run.by_id] == [0, 1, 0, 1, 0, 1]
        loaded.append(run.by_id[5]["loaded_tokens"])
    assert loaded == [0, 12, 12]


def test_an_answer_written_anew_makes_the_one_before_stale() -> None:
    """A turn's answer fills four blocks, then two; the next turn finds the two, though a host had four."""
    turn, anything = Origin(stream=5), Origin()
    writing = [((0.0, 4, 13), turn), ((50.0, 24, 1), anything), ((100.0, 4, 5), turn)]
    run = serve(Offload(Medium(AMPLE)), *writing, ((200.0, 24, 1), anything), ((300.0, 20, 1), turn))
    assert run.by_id[4]["cached_tokens"] + run.by_id[4]["loaded_tokens"] == 8


def test_a_router_may_ask_what_would_be_found() -> None:
    scheduler = Continuous(block_size=4, offload=Offload(Medium(AMPLE)))
    service = Service(scheduler, STEP_TIME, kv_blocks=6, origins=[PROMPT, OTHER])
    run = service.serve([(0.0, 16, 1), (10.0, 16, 1)])
    asked = Request(9, 20.0, 16, 1, PROMPT)
    assert run.engines[0].cached_tokens_of(asked, 20.0) == 12
    assert run.engines[0].kv.cached_tokens(asked, 6) == 8


@pytest.mark.parametrize(("timeout_s", "given_up_s"), [(4.0, 24.0), (6.5, 26.5)])
def test_who_hangs_up_gives_back_what_has_been_loaded(timeout_s: float, given_up_s: float) -> None:
    """A is loaded from 20 to 25, and then waits for the only slot, in which C runs from 21 to 27.2."""
    host = Medium(capacity=AMPLE, bandwidth_bytes_per_s=1.0, latency_s=1.0)
    scheduler = Continuous(block_size=4, max_num_seqs=1, offload=Offload(host))
    service = Service(
        scheduler, STEP_TIME, kv_blocks=6, origins=[PROMPT, OTHER, PROMPT], client=Client(timeout_s=timeout_s)
    )
    run = Run(service, [(0.0, 16, 1), (10.0, 16, 1), (20.0, 16, 1), (21.0, 2, 6)])
    (engine,), held = run.engines, {}
    for now in run.instants():
        held[now] = engine.kv.blocks - engine.kv.free
    run.finish()
    assert run.by_id[2]["status"] == TIMED_OUT
    assert run.by_id[2]["finished_s"] == pytest.approx(given_up_s)
    before_s = max(now for now in held if now < 25.0)
    assert held[before_s] >= 4
    assert held[max(held)] == 0
    engine.kv.evict()
    assert engine.kv._prefixes.queued == engine.kv.free
    assert not engine.loading
    assert not engine.landed
    assert engine.cached_tokens_of(Request(9, 40.0, 16, 1, PROMPT), 40.0) == 12
