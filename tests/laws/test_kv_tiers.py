"""KV tiers behind the GPUs: without room they are nothing, with enough of it the GPU's cache is endless."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise
from random import Random

import numpy as np
import pytest

from servesim.engine.continuous import Continuous
from servesim.engine.decodes import Decodes
from servesim.engine.offload import Medium, Offload
from servesim.workload.client import Client
from tests.costs import AffineStepTime
from tests.engine.test_mooncake_hits import TOKENS, origin, trace
from tests.laws.holdings import held_blocks, shared_blocks
from tests.laws.test_prefix_caching import same
from tests.oracle.leap import service_of
from tests.oracle.variants import HANGING_UP, IN_ORDER, SHARING, SPECULATING
from tests.serving import Run, Sent, Service

AMPLE, NONE = 1e7, Medium(0.0)
HOST, STORE = Offload(host=Medium(AMPLE)), Offload(store=Medium(AMPLE))
BOTH = Offload(host=Medium(1e-6), store=Medium(AMPLE))
STEP_TIME = AffineStepTime(step_s=0.01, prefill_token_s=2e-5, cached_token_s=1e-7)


def drawn(seed: int, offload: Offload | None) -> tuple[Service, tuple[Sent, ...]]:
    """Return a service of requests that share blocks and the requests, with prefix caching and tiers.

    Some have another order of the queue, clients that hang up, or drafts.
    """
    speculating = SPECULATING["continuous, shared prompts"]
    kinds = SHARING["continuous"], IN_ORDER["sharing"], HANGING_UP["continuous"], speculating
    case = kinds[seed % 4](Random(seed))
    service = service_of(case)
    scheduler = replace(service.scheduler, enable_prefix_caching=True, offload=offload)
    return replace(service, scheduler=scheduler), case.requests


@cache
def one_user(offload: Offload | None, kv_blocks: int = 400, requests: int | None = None) -> Run:
    """Serve Mooncake's trace one request after the other; 400 blocks hold little more than the longest."""
    rows = trace()[:requests]
    service = Service(
        Continuous(block_size=TOKENS, offload=offload),
        STEP_TIME,
        kv_blocks=kv_blocks,
        client=Client(max_concurrency=1),
        origins=[origin(row["hash_ids"], row["input_length"]) for row in rows],
    )
    return service.serve([(0.0, row["input_length"], min(row["output_length"], 20)) for row in rows])


def found(run: Run) -> np.ndarray:
    """Return the tokens of each request that were found anywhere."""
    return run.column("cached_tokens") + run.column("loaded_tokens")


@pytest.mark.parametrize("offload", [Offload(NONE), Offload(store=NONE), Offload(NONE, NONE)])
def test_tiers_without_room_are_no_tiers(offload: Offload) -> None:
    """To the last byte, with preemptions and branching prompts."""
    for seed in range(40):
        (service, traffic), (other, _) = drawn(seed, None), drawn(seed, offload)
        assert same(service.serve(traffic), other.serve(traffic))


@pytest.mark.parametrize("offload", [HOST, STORE, BOTH], ids=["host", "store", "both"])
def test_with_ample_room_one_user_finds_what_an_endless_gpu_cache_has(offload: Offload) -> None:
    endless, tiered = one_user(None, 10**6), one_user(offload)
    assert (found(tiered) == found(endless)).all()
    assert tiered.column("loaded_tokens").sum() > 10 * tiered.column("cached_tokens").sum() > 0


def test_free_copies_make_no_first_token_later() -> None:
    first_s = [run.column("first_token_s") - run.column("sent_s") for run in (one_user(HOST), one_user(None))]
    assert (first_s[0] <= first_s[1] + 1e-9).all()
    assert first_s[0].sum() < 0.8 * first_s[1].sum()


def test_more_bandwidth_is_never_slower_for_one_user() -> None:
    """A token's KV is one byte and takes 20 us to compute: at 1e4 bytes/s loading is five times as slow."""
    speeds = (1e4, 5e4, 1e6, 1e21)
    runs = [one_user(Offload(Medium(AMPLE, speed)), requests=600) for speed in speeds]
    for slow, fast in pairwise(runs):
        assert fast.column("finished_s")[-1] < slow.column("finished_s")[-1]
    waits_s = [(run.column("first_token_s") - run.column("sent_s")).mean() for run in runs]
    plain_s = (
        one_user(None, requests=600).column("first_token_s") - one_user(None, requests=600).column("sent_s")
    ).mean()
    assert waits_s[0] > plain_s > waits_s[-1]


def test_every_block_is_free_or_held_and_no_tier_is_fuller_than_full() -> None:
    """At every instant, with tight KV, copies as slow as steps, and hosts with little room; all complete."""
    loaded = 0.0
    for seed in range(150):
        random = Random(seed)
        speeds = random.choice((1.0, 100.0, 1e4, 1e21)), random.choice((100.0, 1e21))
        host = Medium(random.choice((20, 100, 1000)) / 2**30, speeds[0], latency_s=random.choice((0.0, 0.1)))
        store = Medium(random.choice((50, 1e4)) / 2**30, speeds[1]) if random.random() < 0.5 else None
        service, traffic = drawn(seed, Offload(host, store))
        if random.random() < 0.3:
            swapping = replace(service.scheduler, preemption_mode="swap", swap_space=200 / 2**30)
            service = replace(service, scheduler=swapping)
        run = Run(service, traffic)
        for _ in run.instants():
            for engine in run.engines:
                assert engine.kv.free >= 0
                if not service.scheduler.speculation:  # which takes blocks ahead
                    held = held_blocks(engine, run.seen) - shared_blocks(engine)
                    assert engine.kv.free + held == engine.kv.blocks
                assert all(shelf.tier.used <= shelf.tier.blocks for shelf in engine.tiers.shelves)
        assert not run.cluster.unfinished
        assert all(engine.kv.free == engine.kv.blocks for engine in run.engines)
        loaded += sum(row["loaded_tokens"] for row in run.completed)
    assert loaded > 2000


def test_leaps_are_what_single_steps_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies as slow as steps, host and store full: leaps cut to a step each give the same requests.

    (Only a head that waits for room is looked at between leaps, not between steps, though what tiers hold of
    it may change meanwhile: one of some hundred such cases.)
    """
    finish, loaded = Decodes.steps_to_finish, 0.0
    for seed in range(80):
        random = Random(seed)
        speed = random.choice((1e21, 100.0, 1e4))
        tight, second = Medium(random.choice((50, 200)) / 2**30, speed), Medium(100 / 2**30, speed)
        case = SHARING["continuous"](Random(seed))
        service = service_of(case)
        offload = Offload(tight, random.choice((None, second)))
        scheduler = replace(service.scheduler, enable_prefix_caching=True, offload=offload)
        service = replace(service, scheduler=scheduler, replicas=1)
        leaping = service.serve(case.requests)
        with monkeypatch.context() as stepwise:
            stepwise.setattr(Decodes, "steps_to_finish", lambda decodes: min(1, finish(decodes)))
            stepping = service.serve(case.requests)
        for name in ("cached_tokens", "loaded_tokens", "preemptions"):
            assert (leaping.column(name) == stepping.column(name)).all()
        for name in ("queue_s", "first_token_s", "finished_s"):
            assert leaping.column(name) == pytest.approx(stepping.column(name), rel=1e-9, nan_ok=True)
        loaded += leaping.column("loaded_tokens").sum()
    assert loaded > 1000
