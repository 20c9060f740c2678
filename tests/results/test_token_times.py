"""Token times of single requests, from leaps: equal to those of an engine that steps token by token."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import numpy as np
import pytest

from servesim.check import ConfigError
from servesim.results.gaps import token_gaps
from servesim.results.statistics import describe_runs
from servesim.results.token_times import TokenTimes
from tests.oracle.cases import DRAWS
from tests.oracle.leap import leap
from tests.oracle.variants import IN_PHASES, SPECULATING
from tests.results.made import gap, records, request, step
from tests.results.tables import tables_of

SEEDS = range(120)
KINDS = {**DRAWS, "phases": IN_PHASES["plain"], "speculative": SPECULATING["continuous"]}


@pytest.mark.parametrize("kind", KINDS)
def test_gaps_and_token_times_are_those_of_the_oracle(kind: str) -> None:
    """With preemption, chunked prefill, hand-overs of both kinds, padded batches, replicas, drafts."""
    torn = 0
    for seed in SEEDS:
        case = KINDS[kind](Random(seed))
        oracle = case.simulate()
        if oracle.ties:
            continue
        times = TokenTimes.of(tables_of(leap(case)))
        jobs = sorted(oracle.finished, key=lambda job: job.id)
        for gaps_s, second_s, job in zip(times.inter_token_s(), times.second_token_s(), jobs, strict=True):
            expected = [later - earlier for earlier, later in pairwise(job.token_times)]
            assert gaps_s == pytest.approx(expected, abs=1e-9)
            assert job.token_times[0] + gaps_s.sum() == pytest.approx(job.finished_s, rel=1e-9)
            assert second_s == pytest.approx(expected[0] if expected else np.nan, abs=1e-9, nan_ok=True)
        torn += int((~np.isnan(times.gap_s)).sum())
    assert torn > 100 or kind == "static"


@pytest.mark.parametrize("kind", KINDS)
def test_requests_that_a_horizon_cuts_are_left_out_and_disturb_no_other(kind: str) -> None:
    for seed in SEEDS:
        case = KINDS[kind](Random(seed))
        whole = leap(case)
        horizon_s = float(np.median(whole.column("sent_s"))) + 0.3
        full, cut = (TokenTimes.of(tables_of(run)) for run in (whole, leap(case, horizon_s)))
        known = dict(zip(_ids(whole), full.inter_token_s(), strict=True))
        for number, gaps_s in zip(_ids(leap(case, horizon_s)), cut.inter_token_s(), strict=True):
            assert gaps_s == pytest.approx(known[number], rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_where_every_request_completes_the_pooled_gaps_are_those_of_the_summary(kind: str) -> None:
    for seed in SEEDS:
        tables = tables_of(leap(KINDS[kind](Random(seed))))
        got, expected = describe_runs(TokenTimes.of(tables).pooled), describe_runs(token_gaps(tables))
        assert got == pytest.approx(expected, rel=1e-12, nan_ok=True)


#: Two requests share a replica; one is preempted between 2 and 4.
STEPS = [
    step(0.0, 1.0, decodes=0, prefill_tokens=8, sequences=2),
    step(1.0, 0.5, steps=2, decodes=2, sequences=2),
    step(2.0, 0.25, increment_s=0.25, steps=2, decodes=1),  # ends 2.25 and 2.75
    step(2.75, 1.25, decodes=1, prefill_tokens=6, sequences=2),
    step(4.0, 0.5, decodes=1),
]
REQUESTS = [
    request(0.0, 1.0, 4.0, request_id=1, output_tokens=6),
    request(0.0, 1.0, 4.5, request_id=0, output_tokens=5),
]


def test_a_preemption_is_one_gap_of_its_own_request() -> None:
    times = TokenTimes.of(records(REQUESTS, STEPS, [gap(0, 4.0, 2.0)]))
    assert [gaps_s.tolist() for gaps_s in times.inter_token_s()] == [
        [0.5, 0.5, 2.0, 0.5],
        [0.5, 0.5, 0.25, 0.5, 1.25],
    ]
    assert times.second_token_s().tolist() == [0.5, 0.5]
    assert times.decodes().tolist() == [0, 2, 1, 1, 1]


def test_tables_that_do_not_belong_together_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"gives request 0 7 tokens, requests.parquet says 5"):
        TokenTimes.of(records(REQUESTS, STEPS, []))


def test_a_run_without_requests_has_no_tokens() -> None:
    times = TokenTimes.of(records([]))
    assert list(times.inter_token_s()) == []
    assert list(times.pooled()) == []


def _ids(run: object) -> list[float]:
    return sorted(row["request_id"] for row in run.completed)  # type: ignore[attr-defined]
