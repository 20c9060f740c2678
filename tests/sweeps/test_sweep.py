"""Sweeps from beginning to end: the table, its rows, and what happens when something goes wrong."""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

import servesim
from servesim import ConfigError, load, run, sweep
from servesim.config.expansion import Expansion
from servesim.config.groups import Groups
from servesim.engine.clock import StalledError
from servesim.sweeps import point
from servesim.sweeps.flat import flatten
from servesim.sweeps.store import NAME as LOG
from servesim.sweeps.study import study_of
from servesim.sweeps.sweep import run_study
from servesim.sweeps.table import NAME as TABLE
from servesim.sweeps.table import read_table

SMALL = ["model=llama3.1-8b", "cluster.replicas=1", "calibration=roofline", "workload.requests=40"]
RATES = "workload.arrivals.rate_rps=2,20"


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The scenarios that are simulated in this process, as they begin."""
    found: list[Any] = []

    def counted(scenario: Any) -> Any:
        found.append(scenario)
        return run(scenario)

    monkeypatch.setattr(point, "run", counted)
    return found


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != LOG}


def test_every_row_is_the_run_that_its_command_describes() -> None:
    variants = {
        "static": ["scheduler=static", "scheduler.batch_size=4"],
        "split": ["scheduler=disaggregated"],
    }
    table = sweep(["model=llama3.1-8b", *SMALL[2:]], [RATES], 2, variants, n_jobs=1)
    assert list(table["point"]) == list(range(8))
    assert list(table["variant"]) == ["static"] * 4 + ["split"] * 4
    assert list(table["workload.arrivals.rate_rps"]) == [2, 2, 20, 20] * 2
    assert list(table["seed"]) == [0, 1] * 4
    for row in table.to_dict("records")[::3]:
        program, *overrides = shlex.split(row["command"])
        assert program == "servesim"
        assert "steady=true" in overrides
        for name, figure in flatten(run(load(*overrides)).summary).items():
            assert row[name] == figure or (pd.isna(row[name]) and figure is None), name


def test_one_worker_or_many_leave_the_same_bytes(tmp_path: Path) -> None:
    study = study_of(
        {
            "overrides": SMALL,
            "axes": ["gpu=h100-sxm,l40s", "router=random"],
            "seeds": 2,
            "load": {"points": 5},
        }
    )
    for jobs in (1, 2):
        run_study(study, Groups.of(None), folder=tmp_path / str(jobs) / "name", n_jobs=jobs)
    assert files(tmp_path / "1" / "name") == files(tmp_path / "2" / "name")


def test_what_is_in_the_folder_is_what_is_returned(tmp_path: Path) -> None:
    table = sweep(SMALL, [RATES], folder=tmp_path / "x", n_jobs=1)
    assert read_table(tmp_path / "x").equals(table)
    assert yaml.safe_load((tmp_path / "x" / "study.yaml").read_text())["axes"] == [RATES]


def test_a_finished_sweep_runs_nothing_and_composes_nothing(
    tmp_path: Path, simulated: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = sweep(SMALL, [RATES], folder=tmp_path, n_jobs=1)
    assert len(simulated) == 2
    monkeypatch.setattr("servesim.config.compositions.compose", None)
    assert sweep(SMALL, [RATES], folder=tmp_path, n_jobs=1).equals(first)
    assert len(simulated) == 2


@pytest.mark.parametrize("said", [None, b"", b"\xff", b"seeds: ["])
def test_a_study_that_is_gone_or_garbage_is_written_anew(said: bytes | None, tmp_path: Path) -> None:
    sweep(SMALL, folder=tmp_path, n_jobs=1)
    study = tmp_path / "study.yaml"
    whole = study.read_bytes()
    study.unlink()
    if said is not None:
        study.write_bytes(said)
    sweep(SMALL, folder=tmp_path, n_jobs=1)
    assert study.read_bytes() == whole
    assert {path.name for path in tmp_path.iterdir()} == {LOG, TABLE, "study.yaml", "finished.json"}


def test_only_what_is_missing_is_run(tmp_path: Path, simulated: list[Any]) -> None:
    sweep(SMALL, ["workload.arrivals.rate_rps=2"], 2, folder=tmp_path, n_jobs=1)
    table = sweep(SMALL, [RATES], 3, folder=tmp_path, n_jobs=1)
    assert len(simulated) == 2 + 4
    whole = sweep(SMALL, [RATES], 3, n_jobs=1)
    assert table.equals(whole)


def test_a_change_of_anything_that_matters_is_run_again(
    tmp_path: Path, simulated: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep(SMALL, folder=tmp_path, n_jobs=1)
    sweep([*SMALL, "gpu.usd_per_hour=9"], folder=tmp_path, n_jobs=1)
    sweep([*SMALL, "calibration=auto"], folder=tmp_path, n_jobs=1)
    assert len(simulated) == 3
    sweep(SMALL, folder=tmp_path, n_jobs=1)
    assert len(simulated) == 3
    for module in ("point", "finished"):
        monkeypatch.setattr(f"servesim.sweeps.{module}.__version__", "next")
    sweep(SMALL, folder=tmp_path, n_jobs=1)
    assert len(simulated) == 4


def test_a_trace_counts_by_what_it_holds(tmp_path: Path, simulated: list[Any]) -> None:
    trace = tmp_path / "trace.csv"
    heading = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    axes = ["workload.rate_scale=1,2"]
    typed = [*SMALL[:3], "workload=trace", f"workload.path={trace}"]
    trace.write_text(heading + "2023-11-16 18:15:46.6805900,374,44\n")
    first = sweep(typed, axes, folder=tmp_path / "x", n_jobs=1)
    assert list(first["status"]) == ["clean", "clean"]
    sweep(typed, axes, folder=tmp_path / "x", n_jobs=1)
    assert len(simulated) == 2
    trace.write_text(heading + "2023-11-16 18:15:46.6805900,375,44\n")
    second = sweep(typed, axes, folder=tmp_path / "x", n_jobs=1)
    assert len(simulated) == 4
    assert set(first["hash"]).isdisjoint(second["hash"])


def test_equal_configurations_are_run_once(simulated: list[Any]) -> None:
    table = sweep(SMALL, [], 2, {"a": [], "b": ["scheduler=continuous"]}, n_jobs=1)
    assert len(simulated) == 2
    assert list(table["hash"][:2]) == list(table["hash"][2:])
    assert list(table["latency.ttft_s.p99"][:2]) == list(table["latency.ttft_s.p99"][2:])


def test_a_model_that_does_not_fit_is_a_row_with_its_memory_sheet() -> None:
    table = sweep(
        ["model=llama3.1-70b", *SMALL[1:]],
        ["cluster.tensor_parallel_size=1,4", "model.weights_dtype=bf16"],
        n_jobs=1,
    )
    assert list(table["status"]) == ["failed", "clean"]
    assert "does not fit" in table["error"][0]
    assert "weights" in table["error"][0]
    assert pd.isna(table["latency.ttft_s.p99"][0])
    assert pd.isna(table["error"][1])


@pytest.mark.parametrize(("error", "again"), [(StalledError("stuck"), 0), (MemoryError("no room"), 1)])
def test_a_run_that_raises_does_not_stop_the_others(
    error: Exception, again: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[float] = []

    def breaking(scenario: Any) -> Any:
        ran.append(scenario.workload.arrivals.rate_rps)
        if scenario.workload.arrivals.rate_rps == 2:
            raise error
        return run(scenario)

    monkeypatch.setattr(point, "run", breaking)
    table = sweep(SMALL, [RATES], folder=tmp_path, n_jobs=1)
    assert list(table["status"]) == ["failed", "clean"]
    assert str(error) in table["error"][0]
    assert sweep(SMALL, [RATES], folder=tmp_path, n_jobs=1).equals(table)
    assert ran == [2, 20] + [2] * again


def test_what_is_wrong_with_any_point_is_told_before_anything_runs(simulated: list[Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        sweep(
            [*SMALL, "sede=1"],
            ["workload.arrivals.rate_rps=-1,2", "gpu=h100-sxm,mi300x"],
            1,
            {"a": ["scheduler=static"], "b": ["scheduler.batch_siz=3"]},
        )
    lines = [str(problem) for problem in caught.value.problems]
    assert len(lines) == 4
    assert any("did you mean seed?" in line and "(in" not in line for line in lines)
    assert any(
        "must be at least 1e-09" in line and "(in a, workload.arrivals.rate_rps=-1" in line for line in lines
    )
    assert any("mi300x" in line for line in lines)
    assert any("batch_siz" in line and "(in b" in line for line in lines)
    assert simulated == []


def test_a_text_is_no_list_of_overrides() -> None:
    with pytest.raises(ConfigError) as caught:
        sweep("seed=1", "gpu=l40s", variants={"a": "b=c"})
    assert [problem.path for problem in caught.value.problems] == ["overrides", "axes", "variants.a"]


@pytest.mark.parametrize(
    ("given", "paths"),
    [
        ({"seeds": None}, ["seeds"]),
        ({"seeds": 2.5}, ["seeds"]),
        ({"seeds": True}, ["seeds"]),
        ({"seeds": "2"}, ["seeds"]),
        ({"variants": ["a"]}, ["variants"]),
        ({"variants": {"a": None}}, ["variants.a"]),
        ({"variants": {"a": 3}, "n_jobs": 0}, ["variants.a", "n_jobs"]),
        ({"load": "x"}, ["load"]),
        ({"load": 3}, ["load"]),
        ({"overrides": None}, ["overrides"]),
        ({"axes": 3}, ["axes"]),
        ({"n_jobs": "2"}, ["n_jobs"]),
        ({"n_jobs": -7}, ["n_jobs"]),
        ({"n_jobs": None}, ["n_jobs"]),
    ],
)
def test_an_argument_of_another_kind_is_refused(given: dict[str, Any], paths: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        sweep(**given)
    assert [problem.path for problem in caught.value.problems] == paths


@pytest.mark.parametrize("seeds", [np.int64(2), np.array([0, 1]), (0, 1), range(2)])
def test_seeds_may_be_numbers_of_numpy(seeds: Any) -> None:
    assert list(sweep(SMALL, seeds=seeds, n_jobs=np.int64(1))["seed"]) == [0, 1]


def test_a_load_axis_needs_a_load() -> None:
    with pytest.raises(ConfigError, match=r"workload\.arrivals\.concurrency is"):
        sweep([*SMALL, "workload/arrivals=closed_loop"], load={}, n_jobs=1)


def test_a_load_axis_brackets_saturation(simulated: list[Any]) -> None:
    table = sweep(["workload.requests=300", *SMALL[:3]], load={"points": 8}, seeds=2, n_jobs=1)
    loads = table["workload.arrivals.rate_rps"]
    assert len(simulated) == len(table) <= 16
    assert loads.is_monotonic_increasing
    assert list(table["seed"]) == [0, 1] * (len(table) // 2)
    share = table.groupby("workload.arrivals.rate_rps")["saturated"].mean()
    assert share.iloc[0] == 0
    assert share.iloc[-1] >= 0.5


def test_users_are_a_load_too() -> None:
    typed = [*SMALL[:3], "workload.requests=200", "workload/arrivals=closed_loop"]
    table = sweep(typed, load={"key": "workload.arrivals.concurrency", "points": 4}, n_jobs=1)
    assert {16, 64} < set(table["workload.arrivals.concurrency"])
    assert table["saturated"].isna().all()


def test_a_budget_in_seconds_ends_the_search_and_the_next_one_goes_on(tmp_path: Path) -> None:
    began_s = time.monotonic()
    tables = [
        sweep(SMALL, load={"points": 1000, "seconds": 0.3}, seeds=20, folder=tmp_path, n_jobs=1)
        for _ in range(2)
    ]
    assert 0 < len(tables[0]) < len(tables[1])
    assert time.monotonic() - began_s < 30


@pytest.mark.parametrize("jobs", [1, 2])
def test_however_short_the_time_there_is_a_point(jobs: int) -> None:
    assert len(sweep(SMALL, load={"points": 3, "seconds": 1e-9}, n_jobs=jobs)) == 1


def test_a_load_that_its_key_does_not_take_ends_a_search_but_no_sweep() -> None:
    typed = [*SMALL, "workload/arrivals=closed_loop", "workload.arrivals.concurrency=900000"]
    table = sweep(typed, load={"key": "workload.arrivals.concurrency", "points": 5}, n_jobs=1)
    loads = table["workload.arrivals.concurrency"]
    assert loads.between(1, 1_000_000).all()
    assert 900_000 in set(loads)


def test_a_mistake_in_every_configuration_is_told_without_looking_at_all_seeds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_at: list[Any] = []

    def counted(self: Expansion, typed: Any) -> Any:
        looked_at.append(typed)
        return scenario(self, typed)

    scenario = Expansion.scenario
    monkeypatch.setattr(Expansion, "scenario", counted)
    with pytest.raises(ConfigError, match="did you mean horizon_s"):
        sweep(SMALL, ["horizon_ss=1,2"], seeds=1000, n_jobs=1)
    assert len(looked_at) == 2
    with pytest.raises(ConfigError, match=r"did you mean horizon_s\?$"):
        sweep([*SMALL, "horizon_ss=1"], ["workload.requests=range(1,1001)"], n_jobs=1)
    assert len(looked_at) < 200


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    sweep(SMALL, [RATES], 2, n_jobs=1, progress=lambda done, most: told.append((done, most)))
    assert told == [(done, 4) for done in range(5)]


def test_options_of_ones_own_are_found_and_named_in_the_command(tmp_path: Path) -> None:
    (tmp_path / "slo").mkdir()
    (tmp_path / "slo" / "mine.yaml").write_text("ttft_s: 0.001\ntpot_s: null\ne2e_s: null\nattainment: 1.0\n")
    table = sweep([*SMALL, "slo=mine"], config_dir=tmp_path, n_jobs=1)
    assert table["goodput.attainment"][0] == 0
    assert shlex.split(table["command"][0])[1:3] == ["--config-dir", str(tmp_path)]


def test_a_killed_sweep_goes_on_where_it_was(tmp_path: Path, simulated: list[Any]) -> None:
    axes = ["workload.arrivals.rate_rps=range(1,41)"]
    program = f"import servesim; servesim.sweep({SMALL!r}, {axes!r}, folder={str(tmp_path)!r}, n_jobs=1)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen([sys.executable, "-c", program], env=environment)
    log = tmp_path / LOG
    wait_until(lambda: (log.exists() and log.read_bytes().count(b"\n") >= 3) or process.poll() is not None)
    process.send_signal(signal.SIGKILL)
    assert process.wait(timeout=60) == -signal.SIGKILL
    done = log.read_bytes().count(b"\n")
    assert 3 <= done < 40
    assert not (tmp_path / TABLE).exists()
    table = sweep(SMALL, axes, folder=tmp_path, n_jobs=1)
    assert len(simulated) == 40 - done
    assert table.equals(sweep(SMALL, axes, n_jobs=1))


def wait_until(condition: Callable[[], bool]) -> None:
    end_s = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end_s
        time.sleep(0.01)


def test_the_public_name_is_the_function() -> None:
    assert servesim.sweep is sweep
