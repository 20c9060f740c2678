"""Users of a closed loop are replayed as they began; where they thought, at their times."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from servesim.check import ConfigError
from servesim.cli import main
from servesim.screen.replays import notes
from servesim.validate.compare import Comparison, compare
from servesim.validate.readers import read
from servesim.validate.replay import replay
from servesim.validate.simulated import observed
from tests.validate.runs import OVERRIDES, served, vllm_result, write_json

USERS = ("workload/arrivals=closed_loop", "workload.arrivals.concurrency=6")
HOW = {
    "at once": [],
    "ramp": ["workload.arrivals.ramp_up_s=4"],
    "thinking": ["workload.arrivals.think_time_s=0.7"],
    "both": ["workload.arrivals.ramp_up_s=3", "workload.arrivals.think_time_s=0.4"],
}


def exported(folder: Path, how: Sequence[str]) -> Path:
    served(*USERS, *how).save(folder)
    assert main(["export", str(folder), "--to", "vllm-detailed"]) == 0
    return folder / "vllm_detailed.json"


def largest_error(comparison: Comparison) -> float:
    table = comparison.table()
    return float(table[table.metric.isin(["ttft", "tpot", "e2e"])].error.abs().max())


@pytest.mark.parametrize("name", HOW)
def test_an_exported_closed_loop_agrees_with_its_replay(tmp_path: Path, name: str) -> None:
    measured = read(exported(tmp_path, HOW[name]))
    assert measured.of_users
    assert measured.closed_loop is (name in ("at once", "ramp"))
    assert largest_error(compare(measured, replay(measured, OVERRIDES))) < 1e-5


@pytest.mark.parametrize("name", HOW)
def test_users_who_begin_and_think_as_they_did_agree_too(tmp_path: Path, name: str) -> None:
    measured = read(exported(tmp_path, HOW[name]))
    found = replay(measured, [*OVERRIDES, *(HOW[name] or ["workload.arrivals.ramp_up_s=0"])])
    assert largest_error(compare(measured, found)) < 1e-5
    assert found.summary["scenario"]["workload"]["arrivals"]["concurrency"] == 6


def test_users_of_a_replay_think_longer_and_less_is_done_in_a_second(tmp_path: Path) -> None:
    measured = read(exported(tmp_path, []))
    rates = [
        replay(measured, [*OVERRIDES, f"workload.arrivals.think_time_s={seconds}"]).summary["throughput"][
            "requests_per_s"
        ]
        for seconds in (0, 1, 4)
    ]
    assert rates == sorted(rates, reverse=True)
    assert rates[2] < 0.7 * rates[0]


def test_times_that_contradict_a_burst_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    path = exported(tmp_path, HOW["both"])
    monkeypatch.chdir(tmp_path)
    assert main(["validate", str(path), *OVERRIDES]) == 0
    printed = " ".join(capfd.readouterr().out.split())
    assert "at their recorded times" in printed
    assert "s, not at once: replayed at its times" in printed
    assert main(["validate", str(path), *OVERRIDES, *HOW["both"]]) == 0
    printed = " ".join(capfd.readouterr().out.split())
    assert "6 users, each the next when the last has ended" in printed
    assert "replayed at its times" not in printed


def test_an_even_ramp_is_found_in_the_times_of_sending(tmp_path: Path) -> None:
    measured = read(exported(tmp_path, HOW["ramp"]))
    assert measured.ramp_up_s == pytest.approx(4)
    assert "its users began evenly over 4 s" in list(notes([compare(measured, replay(measured, OVERRIDES))]))


def test_made_up_times_contradict_nothing(tmp_path: Path) -> None:
    result = vllm_result(observed(served(*USERS, *HOW["ramp"])), max_concurrency=6, request_rate="inf")
    del result["start_times"]
    run = read(write_json(tmp_path / "run.json", result))
    assert run.drawn
    assert run.closed_loop


def test_users_are_refused_for_a_run_that_is_of_none(tmp_path: Path) -> None:
    run = read(write_json(tmp_path / "run.json", vllm_result(observed(served()))))
    with pytest.raises(ConfigError, match=r"run\.json is not said to be of users"):
        replay(run, [*OVERRIDES, "workload.arrivals.ramp_up_s=1"])
    with pytest.raises(ConfigError, match="the measured run has its own traffic"):
        replay(run, [*OVERRIDES, "workload.arrivals.rate_rps=1"])


def test_a_request_cut_by_the_horizon_is_left_out_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    path = exported(tmp_path, ["horizon_s=8"])
    monkeypatch.chdir(tmp_path)
    measured = read(path)
    assert measured.failed > 0
    assert not np.isnan(measured.e2e_s).any()
    assert main(["validate", str(path), *OVERRIDES]) == 0
    printed = " ".join(capfd.readouterr().out.split())
    assert "failed when measured: left out, and the load of what was done for them is not replayed" in printed
