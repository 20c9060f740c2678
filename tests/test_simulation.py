"""One run from beginning to end, through the public face."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import servesim
from servesim.check import ConfigError
from servesim.cluster.router import Pick
from servesim.cluster.view import PoolView
from servesim.engine.clock import StalledError
from servesim.engine.continuous_engine import ContinuousEngine
from servesim.scenario import Scenario
from servesim.workload.arrivals import ClosedLoop, Poisson
from servesim.workload.lengths import Fixed
from servesim.workload.synthetic import Synthetic

KINDS = ("continuous", "static", "disaggregated")


@cache
def scenario(kind: str = "continuous") -> Scenario:
    """Return a scenario with 200 requests of 600 tokens in and 40 out."""
    workload = Synthetic(Poisson(8.0), Fixed(600, 40), requests=200)
    return replace(servesim.load(f"scheduler={kind}", "calibration=roofline"), workload=workload)


@pytest.mark.parametrize("kind", KINDS)
def test_every_scheduler_serves_every_request(kind: str) -> None:
    result = servesim.run(scenario(kind))
    accounting = result.summary["accounting"]
    assert (accounting["injected"], accounting["completed"], accounting["clean"]) == (200, 200, True)
    assert sorted(result.requests.request_id) == list(range(200))
    assert (result.requests.generated_tokens == 40).all()
    assert result.summary["latency"]["e2e_s"]["n"] == 200


def test_one_request_takes_the_time_of_its_steps() -> None:
    """End to end: a chunk of 600 tokens, then 39 decodes that read 601 to 639 tokens."""
    workload = Synthetic(Poisson(8.0), Fixed(600, 40), requests=1)
    base = replace(scenario(), workload=workload)
    (pool,) = base.deployments()
    ttft_s = pool.step_time.mixed(0, 0, [(600, 0)])
    decodes_s = sum(pool.step_time.mixed(1, context, ()) for context in range(601, 640))
    (row,) = servesim.run(base).requests.itertuples()
    assert row.ttft_s == pytest.approx(ttft_s, rel=1e-9)
    assert row.e2e_s == pytest.approx(ttft_s + decodes_s, rel=1e-9)
    assert row.tpot_s == pytest.approx(decodes_s / 39, rel=1e-9)


def test_the_kv_of_a_transfer_is_the_whole_models() -> None:
    """327,680 bytes per token over the NVLinks of four GPUs at 450 GB/s each, and 0.6 us of latency."""
    base = replace(scenario("disaggregated"), workload=Synthetic(Poisson(8.0), Fixed(600, 40), requests=1))
    (row,) = servesim.run(base).requests.itertuples()
    assert row.transfer_s == pytest.approx(600 * 327_680 / (4 * 450e9) + 0.6e-6, rel=1e-6)


def test_a_scenario_is_not_used_up() -> None:
    """The same scenario runs again, to the same result; another seed gives another."""
    first, again, other = (servesim.run(it) for it in (scenario(), scenario(), replace(scenario(), seed=1)))
    pd.testing.assert_frame_equal(first.requests, again.requests)
    assert not first.requests.sent_s.equals(other.requests.sent_s)


def test_lengths_and_places_in_the_traffic_do_not_depend_on_the_cluster() -> None:
    """Request i is the same for every scheduler, and its unit gap is the same at every rate."""
    base = replace(scenario(), workload=servesim.load("workload.requests=100").workload)
    fast = replace(base, workload=replace(base.workload, arrivals=Poisson(8.0)))
    whole, split, faster = (
        servesim.run(it).requests.sort_values("request_id", ignore_index=True)
        for it in (base, replace(scenario("disaggregated"), workload=base.workload), fast)
    )
    for column in ("sent_s", "input_tokens", "output_tokens"):
        assert whole[column].equals(split[column])
    assert whole.input_tokens.equals(faster.input_tokens)
    assert np.allclose(whole.sent_s * base.workload.arrivals.rate_rps, faster.sent_s * 8.0)


def test_problems_are_told_before_anything_runs() -> None:
    wrong = replace(scenario(), seed=-1, scheduler=replace(scenario().scheduler, block_size=0))
    with pytest.raises(ConfigError) as error:
        servesim.run(wrong)
    assert [problem.path for problem in error.value.problems] == ["scheduler.block_size", "seed"]


# ---- its end ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_horizon_cuts_the_run(kind: str) -> None:
    """What was sent by then is accounted for, the rest is not sent, and nothing is known of later."""
    sent_s = servesim.run(scenario(kind)).requests.sent_s.sort_values(ignore_index=True)
    horizon_s = float(sent_s[99]) + 1e-3
    result = servesim.run(replace(scenario(kind), horizon_s=horizon_s))
    counts, table = result.summary["accounting"], result.requests
    assert (counts["injected"], counts["not_sent"], len(table)) == (100, 100, 100)
    assert counts["running"] + counts["queued"] == table.e2e_s.isna().sum() > 0
    assert not counts["clean"]
    assert (table.sent_s + table.e2e_s).max() <= horizon_s
    assert result.summary["duration_s"] == pytest.approx(horizon_s - sent_s[0])


def test_a_run_without_traffic_is_clean() -> None:
    """A horizon before the first request: nothing to say, and nothing wrong."""
    summary = servesim.run(replace(scenario(), horizon_s=1e-9)).summary
    assert (summary["accounting"]["injected"], summary["accounting"]["not_sent"]) == (0, 200)
    assert summary["accounting"]["clean"]
    assert summary["latency"]["ttft_s"]["n"] == 0
    assert summary["latency"]["ttft_s"]["p99"] is None


def test_a_closed_loop_goes_on_until_its_duration() -> None:
    """Eight users; the last answers come after the sending has ended, and nothing is missing."""
    workload = Synthetic(ClosedLoop(8), Fixed(600, 40), duration_s=3.0)
    summary = servesim.run(replace(scenario(), workload=workload)).summary
    counts = summary["accounting"]
    assert counts["clean"]
    assert counts["not_sent"] == 0
    assert counts["injected"] > 16
    assert 3.0 < summary["duration_s"] < 5.0
    assert summary["saturated"] is None


def test_prompts_that_are_too_long_make_a_run_unclean() -> None:
    workload = Synthetic(Poisson(8.0), Fixed(200_000, 40), requests=3)
    counts = servesim.run(replace(scenario(), workload=workload)).summary["accounting"]
    assert (counts["dropped"], counts["completed"], counts["clean"]) == ({"prompt_too_long": 3}, 0, False)


def test_outputs_that_are_too_long_are_capped() -> None:
    scheduler = replace(scenario().scheduler, max_model_len=620)
    result = servesim.run(replace(scenario(), scheduler=scheduler))
    assert result.summary["accounting"]["length_capped"] == 200
    assert (result.requests.generated_tokens == 20).all()


def test_preemption_ends() -> None:
    """KV for one and a half requests under a hundred long ones."""
    scheduler = replace(scenario().scheduler, num_gpu_blocks_override=94)
    workload = Synthetic(Poisson(50.0), Fixed(600, 400), requests=100)
    counts = servesim.run(replace(scenario(), scheduler=scheduler, workload=workload)).summary["accounting"]
    assert counts["completed"] == 100
    assert counts["preemptions"] > 50


def test_a_run_that_cannot_go_on_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Requests in the system and an empty event list: never a silent loss, nor an older run's summary."""
    (tmp_path / "summary.json").write_text("{}")
    monkeypatch.setattr(ContinuousEngine, "submit", lambda engine, request, now: None)
    with pytest.raises(StalledError, match="200 requests are in the system"):
        servesim.run(scenario(), tmp_path)
    assert not (tmp_path / "summary.json").exists()


# ---- who watches -----------------------------------------------------------------------------------


def test_progress_is_told() -> None:
    told: list[int] = []
    workload = Synthetic(Poisson(100.0), Fixed(1, 1), requests=3000)
    servesim.run(replace(scenario(), workload=workload), progress=told.append)
    assert told == [0, 1024, 2048]


def test_tables_may_grow_in_a_folder(tmp_path: Path) -> None:
    """The same bytes as from memory."""
    in_folder = servesim.run(scenario(), folder=tmp_path)
    assert {"requests.parquet", "steps.parquet"} <= {path.name for path in tmp_path.iterdir()}
    saved = tmp_path / "saved"
    servesim.run(scenario()).save(saved)
    for name in ("requests.parquet", "steps.parquet"):
        assert (tmp_path / name).read_bytes() == (saved / name).read_bytes()
    assert len(in_folder.requests) == 200


@dataclass(frozen=True)
class ByLength:
    """Long prompts to the last replica, short ones to the first."""

    longest: int

    def start(self, view: PoolView, rng: np.random.Generator) -> Pick:
        """Return a function that looks at the prompt."""
        return lambda request: view.replicas - 1 if request.input_tokens > self.longest else 0


def test_a_router_of_the_users_own() -> None:
    base = replace(scenario(), workload=servesim.load("workload.requests=50").workload)
    table = servesim.run(replace(base, router=ByLength(1000))).requests
    assert (table.replica == (table.input_tokens > 1000)).all()
    assert table.replica.nunique() == 2


def test_the_simulator_tells_of_itself() -> None:
    told = servesim.run(scenario()).summary["simulator"]
    assert told["cpu_s"] > 0
    assert told["events"] > 200
    assert told["steps"] > told["events"]


@pytest.mark.parametrize("thing", ["scheduler=static", None, servesim.load().model])
def test_what_is_no_scenario_is_refused(thing: object) -> None:
    with pytest.raises(TypeError, match="a Scenario is needed"):
        servesim.run(thing)  # type: ignore[arg-type]
