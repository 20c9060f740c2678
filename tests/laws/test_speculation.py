"""Laws of speculative decoding: what acceptance can and cannot do, and that no token is lost or won."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise
from math import ceil
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servesim.cost.speculation import Heads, Ngram, Speculation
from servesim.cost.speculative import speculative_step_time
from servesim.engine.continuous import Continuous
from servesim.workload.arrivals import ClosedLoop
from servesim.workload.client import Client
from tests.cost.fitted import H100, OVERHEAD, profile
from tests.cost.shipped import Roofline, model
from tests.costs import AffineStepTime
from tests.laws.cases import Case, cases
from tests.serving import Run, Service

LLAMA = model("llama3.1-8b")
#: A step that costs the same whatever it holds: verification is free.
FREE = AffineStepTime(step_s=0.01)


def speculating(case: Case, speculation: Speculation | None) -> Case:
    """Return the same case with drafts, and with a budget for them."""
    scheduler = case.service.scheduler
    assert isinstance(scheduler, Continuous)
    seqs = min(scheduler.max_num_seqs, 8)
    budget = max(scheduler.max_num_batched_tokens, seqs * 11)
    limits: dict[str, Any] = {"max_num_seqs": seqs, "max_num_batched_tokens": budget}
    scheduler = replace(scheduler, **limits, speculation=speculation)
    return replace(case, service=replace(case.service, scheduler=scheduler))


def ngram(acceptance: float, drafted: int = 4) -> Ngram:
    """Return drafts that cost nothing but their verification."""
    return Ngram(num_speculative_tokens=drafted, acceptance=acceptance)


drafts = st.builds(
    lambda kind, drafted, rate: kind(num_speculative_tokens=drafted, acceptance=rate),
    st.sampled_from((Ngram, Heads)),
    st.sampled_from((1, 3, 10)),
    st.sampled_from((0.0, 0.4, 0.8, 1.0)),
)


@pytest.mark.parametrize("kind", ["continuous", "disaggregated"])
def test_no_token_is_lost_or_won(kind: str) -> None:
    """Every request gets the tokens it asked for, in as many steps as were drawn; all blocks come back."""

    @settings(max_examples=60)
    @given(cases(kind), drafts)
    def holds(case: Case, speculation: Speculation) -> None:
        case = speculating(case, speculation)
        run = case.serve()
        for row in run.completed:
            assert row["generated"] == row["output_tokens"]
        if not sum(row["preemptions"] for row in run.requests):
            emitted = sum(row["steps"] * row["emitted"] for row in run.leaps)
            torn = len(run.gaps)
            further = sum(row["generated"] - 1 for row in run.completed)
            assert emitted + torn == pytest.approx(further)
        assert all(engine.kv.free == engine.kv.blocks for engine in run.engines)

    holds()


@settings(max_examples=40)
@given(cases("continuous"))
def test_drafts_that_are_never_right_change_nothing_but_blocks(case: Case) -> None:
    """Where a step costs what it costs and KV is plenty, acceptance 0 is decoding one by one, to the bit."""
    plenty = replace(case, service=replace(case.service, kv_blocks=10_000, step_time=FREE))
    scheduler = plenty.service.scheduler
    assert isinstance(scheduler, Continuous)
    many = replace(scheduler, max_num_batched_tokens=8192)
    plenty = replace(plenty, service=replace(plenty.service, scheduler=many))
    one, other = speculating(plenty, None).serve(), speculating(plenty, ngram(0.0)).serve()
    for name in ("finished_s", "first_token_s", "generated"):
        assert one.column(name).tobytes() == other.column(name).tobytes()


@pytest.mark.parametrize(("drafted", "output"), [(1, 101), (3, 101), (7, 103)])
def test_drafts_that_are_always_right_emit_all_their_tokens(drafted: int, output: int) -> None:
    """A step emits k + 1 tokens: behind the first, ceil((output - 1) / (k + 1)) steps."""
    scheduler = Continuous(speculation=ngram(1.0, drafted))
    (row,) = Service(scheduler, step_time=FREE).serve([(0.0, 10, output)]).completed
    steps = 1 + ceil((output - 1) / (drafted + 1))
    assert row["finished_s"] == pytest.approx(steps * 0.01)


def test_a_run_emits_what_the_formula_says() -> None:
    """Tokens per step over many long answers: (1 - a^(k+1)) / (1 - a), less what ends are cut off."""
    speculation = ngram(0.6, 5)
    requests = [(0.0, 10, 4001)] * 200
    run = Service(Continuous(speculation=speculation), step_time=FREE).serve(requests)
    drafts = sum(row["steps"] * row["decodes"] for row in run.leaps)
    assert 200 * 4000 / drafts == pytest.approx((1 - 0.6**6) / 0.4, rel=0.003)


@settings(max_examples=40)
@given(cases("continuous", roomy=True), st.sampled_from((1, 4, 10)))
def test_more_acceptance_is_never_slower_for_one_user(case: Case, drafted: int) -> None:
    """One request at a time, each ends no later: uniforms are common to all rates."""
    alone = replace(case, service=replace(case.service, client=Client(max_concurrency=1), replicas=1))
    rates = (0.0, 0.3, 0.7, 0.95, 1.0)
    ends = [speculating(alone, ngram(rate, drafted)).serve().column("finished_s") for rate in rates]
    for worse, better in pairwise(ends):
        assert (better <= worse + 1e-9).all()


def serve(fidelity: Any, speculation: Speculation | None, users: int) -> Run:
    """Serve a closed loop on an H100 with an 8B model."""
    times = partial(
        fidelity.step_time,
        gpu=H100,
        tensor_parallel_size=1,
        kv_cache_dtype="auto",
        max_num_seqs=512,
        max_num_batched_tokens=8192,
    )
    step_time: Any = times(LLAMA, overhead=OVERHEAD)
    if speculation is not None:
        step_time = speculative_step_time(times, speculation, LLAMA, OVERHEAD)
    scheduler = Continuous(max_num_seqs=512, speculation=speculation)
    service = Service(scheduler, step_time=step_time, kv_blocks=20_000, users=ClosedLoop(users))
    return service.serve([(0.0, 200, 200)] * max(3 * users, 60))


@pytest.mark.parametrize("fidelity", [Roofline(), profile()])
@pytest.mark.parametrize("kind", [Ngram, Heads])
def test_it_helps_a_small_batch_and_hurts_a_large_one(fidelity: Any, kind: Any) -> None:
    def gain(users: int, rate: float) -> float:
        speculation = kind(num_speculative_tokens=7, acceptance=rate)
        plain, drafted = (serve(fidelity, each, users).clock.now for each in (None, speculation))
        return plain / drafted

    gains = [gain(users, 0.5) for users in (1, 32, 384)]
    assert gains[0] > 1.1
    assert gains[0] > gains[1] > gains[2]
    assert gains[2] < 1
    assert all(gain(users, 0.0) < 1 for users in (1, 32, 384))
