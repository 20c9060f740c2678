"""Trials, and traffic made denser."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim import load
from servesim.frontier.traffic import FEWEST, MOST, Trial, drawn, fair_trial, has_a_rate, scaled
from servesim.results.slo import Slo
from servesim.workload.arrivals import Poisson
from servesim.workload.synthetic import Synthetic


def workload(*overrides: str) -> Synthetic:
    found = load(*overrides).workload
    assert isinstance(found, Synthetic)
    return found


TRAFFIC = workload()


@given(st.floats(0.001, 1e7), st.sampled_from([0.5, 0.9, 0.99, 0.999, 1.0]), st.integers(1, 9))
def test_a_trial_has_enough_requests_but_not_too_many(rate: float, attainment: float, seeds: int) -> None:
    traffic = replace(TRAFFIC, arrivals=Poisson(rate))
    slo = Slo(ttft_s=0.5, tpot_s=0.05, attainment=attainment)
    trial = fair_trial(traffic, slo, tuple(range(seeds)))
    assert FEWEST <= trial.requests <= MOST
    may_miss = (1 - min(attainment, 0.999)) * trial.requests * seeds / 2
    assert may_miss >= 20 * (1 - 1e-9)
    assert trial.long_enough == (trial.at_a_time <= MOST)
    assert trial.requests_at(2.0) >= trial.requests


def test_a_trial_of_a_given_size_keeps_it() -> None:
    trial = Trial(77, (0,))
    assert trial.requests_at(1e6) == 77
    assert trial.long_enough


def test_denser_traffic_is_the_same_in_less_time() -> None:
    traffic = workload("workload.requests=50")
    once, thrice = drawn(traffic, 3), drawn(scaled(traffic, 3.0), 3)
    assert np.allclose(once.sent_s, 3 * thrice.sent_s)
    assert (once.input_tokens == thrice.input_tokens).all()


def test_a_trace_has_a_rate_too(tmp_path: Path) -> None:
    rows = [f"2023-11-16 18:15:{second:02}.0,100,10" for second in range(30)]
    (tmp_path / "trace.csv").write_text("\n".join(["TIMESTAMP,ContextTokens,GeneratedTokens", *rows, ""]))
    trace = load("workload=trace", f"workload.path={tmp_path / 'trace.csv'}").workload
    assert has_a_rate(trace)
    assert fair_trial(trace, Slo(ttft_s=1.0), (0,)) == Trial(30, (0,))
    assert drawn(scaled(trace, 2.0), 0).sent_s[-1] == pytest.approx(29 / 2)
    assert not has_a_rate(replace(trace, at_once=True))


@pytest.mark.parametrize("arrivals", ["closed_loop", "schedule", "burst", "vllm_bench"])
def test_other_traffic_has_none(arrivals: str) -> None:
    assert not has_a_rate(workload(f"workload/arrivals={arrivals}"))
