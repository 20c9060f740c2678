"""The command that runs a study: what it prints, what it leaves behind, and its exit status."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from servesim.cli import main
from servesim.config.groups import Groups
from servesim.sweeps.grid import grid
from servesim.sweeps.plan import Plan
from servesim.sweeps.study import load_study
from servesim.sweeps.table import read_table

STUDIES = Groups.of(None).options("experiment")
MINE = """\
question: What if?
overrides: [model=llama3.1-8b, cluster.replicas=1, calibration=roofline, workload.requests=40]
variants:
  static: [scheduler=static]
  continuous: [scheduler=continuous]
axes: ["workload.arrivals.rate_rps=2,20"]
seeds: 2
baseline: static
compare: [latency.ttft_s.p99]
"""
FIXED = "workload.arrivals.rate_rps=2"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    (tmp_path / "own" / "experiment").mkdir(parents=True)
    (tmp_path / "own" / "experiment" / "mine.yaml").write_text(MINE)
    return tmp_path


def run_mine(*typed: str) -> int:
    return main(["--config-dir", "own", "experiment=mine", *typed])


@pytest.mark.parametrize("name", STUDIES)
def test_every_shipped_study_can_be_run(name: str) -> None:
    groups = Groups.of(None)
    study = load_study([f"experiment={name}"], groups)
    plan = Plan(study, grid(study, groups), groups, None)
    points = plan.points([(number, None) for number in range(len(plan.grid.configurations))])
    assert study.question.endswith("?")
    assert len({point.hash for point in points}) == len(points)
    assert all(point.outcome is None for point in points)
    assert study.load is None or len(plan.searches(points, study.load.key, 3)) == len(
        plan.grid.configurations
    )


def test_a_study_prints_a_table_and_leaves_one(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_mine() == 0
    printed, told = capfd.readouterr()
    lines = printed.splitlines()
    assert told == "mine: 8 points (4 configurations x 2 seeds), in sweeps/mine/\n"
    assert lines[0] == "What if?"
    assert [line.split() for line in lines[2:4]] == [["latency."], ["variant", "rate_rps", "ttft_s.p99"]]
    assert [line.split()[:2] for line in lines[4:8]] == [
        [variant, rate] for variant in ("static", "continuous") for rate in ("2", "20")
    ]
    assert all("±" in line for line in lines[4:8])
    changes = lines[[line.split()[:2] for line in lines].index(["less", "static"]) + 1 :][:2]
    assert [line.split()[:2] for line in changes] == [["continuous", rate] for rate in ("2", "20")]
    assert all(line.split()[2].startswith("-") for line in changes)
    assert lines[-3:] == [
        "8 points: 8 clean",
        "Files: sweeps/mine/",
        "Page: sweeps/mine/index.html",
    ]
    assert max(map(len, lines)) <= 100
    table = read_table(here / "sweeps" / "mine")
    assert len(table) == 8
    assert table["command"].str.startswith("servesim --config-dir own ").all()
    said = yaml.safe_load((here / "sweeps" / "mine" / "study.yaml").read_text())
    assert (said["name"], said["axes"]) == ("mine", ["workload.arrivals.rate_rps=2,20"])


def test_a_finished_study_is_told_from_the_table(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_mine(FIXED) == 0
    first = capfd.readouterr().out
    assert run_mine(FIXED) == 0
    again = capfd.readouterr().out
    assert again == first.replace("4 clean\n", "4 clean; all known from before\n")


def test_what_is_typed_changes_the_study(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_mine(FIXED, "gpu=h100-sxm,h200-sxm", "experiment.seeds=1", "hydra.sweep.dir=x/y") == 0
    printed, told = capfd.readouterr()
    assert told == "mine: 4 points, in x/y/\n"
    assert "±" not in printed
    assert list(read_table(here / "x" / "y")["gpu"]) == ["h100-sxm", "h200-sxm"] * 2


def test_a_load_axis_shows_the_best_settled_load_of_each(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_mine("experiment.axes=[]", "experiment.load={points: 4}") == 0
    printed, told = capfd.readouterr()
    assert told.startswith("mine: at most 16 points (2 configurations x 4 loads x 2 seeds)")
    assert [line.split()[0] for line in printed.splitlines()[4:6]] == ["static", "continuous"]
    table = read_table(here / "sweeps" / "mine")
    loads = table.assign(settled=table["saturated"].notna()).groupby(
        ["variant", "workload.arrivals.rate_rps"]
    )
    good = loads["goodput.requests_per_s"].mean()
    settled = good[loads["settled"].all()]
    known = {name: settled[name] if name in settled else good[name] for name in ("static", "continuous")}
    best = {name: goodput.idxmax() for name, goodput in known.items()}
    shown = {line.split()[0]: float(line.split()[1]) for line in printed.splitlines()[4:6]}
    assert shown == best


def test_a_budget_in_seconds_says_what_it_gives_up(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_mine("experiment.axes=[]", "experiment.load={points: 3, seconds: 60}") == 0
    assert "60 s allow: the loads depend on this machine's speed" in capfd.readouterr().err


def test_one_failed_point_is_a_hole_and_the_status_is_3(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    idle = "workload.tenants.a.priority=1"
    assert run_mine(FIXED, idle, "model=llama3.1-8b,llama3.1-405b") == 3
    printed, complaints = capfd.readouterr()
    where = "scheduler=static or queue_order=fcfs"
    assert printed.count(f"the tenants' priority has no effect on the order with {where}") == 1
    assert "8 points: 4 clean, 4 failed" in printed
    assert "llama3.1-405b does not fit" in printed
    assert printed.count("does not fit") == 2  # a static engine needs other room
    assert "Traceback" not in complaints
    assert list(read_table(here / "sweeps" / "mine")["status"]) == ["clean", "clean", "failed", "failed"] * 2
    assert run_mine(FIXED, idle, "model=llama3.1-8b,llama3.1-405b") == 3


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (["experiment.sedes=3", "experiment.load.pints=2"], ["did you mean seeds?", "load.pints"]),
        (["workload.arrivals.rate_rps=0,x", "sede=1"], ["at least 1e-09", "= 'x'", "did you mean seed?"]),
        (["gpu=mi300x,l40s"], ["mi300x"]),
        (["experiment.compare=[latency.ttft.p99]", FIXED], ["did you mean latency.ttft_s.p99?"]),
        (["-m"], ["leave -m out"]),
        (["experiment=other"], ["one study at a time"]),
        (["hydra.run.dir=x"], ["hydra.sweep.dir"]),
        (["hydra.sweep.dir="], ["names no folder"]),
        (["nonsense"], ["write key=value"]),
        (["seed=x"], ["whole number"]),
        (["experiment.load={}"], ["is swept by an axis, too"]),
        (["--config-name", "x"], ["no effect"]),
    ],
)
def test_bad_input_is_refused_in_a_few_lines(
    typed: list[str], words: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_mine(*typed) == 1
    printed, complaints = capfd.readouterr()
    assert printed == ""
    assert all(word in complaints for word in words)
    assert "Traceback" not in complaints
    assert len(complaints.splitlines()) <= 5


def test_a_study_that_does_not_exist_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["experiment=batching_frontir"]) == 1
    assert "did you mean batching_frontier?" in capfd.readouterr().err


def test_a_study_can_be_read_before_it_is_run(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["experiment=batching_frontier", "--cfg", "job"]) == 0
    assert yaml.safe_load(capfd.readouterr().out)["experiment"]["baseline"] == "static"


def test_a_study_is_not_a_scenario(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["experiment.seeds=3"]) == 1
    assert "choose one with experiment=NAME" in capfd.readouterr().err


def test_help_lists_the_studies(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    printed = capfd.readouterr().out
    assert all(name in printed for name in STUDIES)


def test_an_interrupted_study_goes_on(here: Path) -> None:
    program = "import sys; from servesim.cli import main; sys.exit(main())"
    typed = ["--config-dir", "own", "experiment=mine", "workload.arrivals.rate_rps=range(1,200)"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", program, *typed], stderr=subprocess.PIPE, text=True, env=environment
    )
    log = here / "sweeps" / "mine" / "points.log"
    while process.poll() is None and not (log.exists() and log.stat().st_size):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, complaints = process.communicate(timeout=60)
    assert process.returncode == 130
    assert complaints.splitlines()[-1] == "servesim: interrupted"
    assert log.read_bytes().count(b"\n") >= 1


def test_a_study_leaves_a_page_which_is_drawn_again_when_the_study_has_changed(here: Path) -> None:
    page = here / "sweeps" / "mine" / "index.html"
    assert run_mine(FIXED) == 0
    first = page.read_text()
    assert "<h1>mine</h1>" in first
    page.write_text("as it was")
    assert run_mine(FIXED) == 0
    assert page.read_text() == "as it was"
    assert run_mine(FIXED, "experiment.seeds=1") == 0
    assert "One seed" in page.read_text()
    assert "One seed" not in first
    page.unlink()
    assert run_mine(FIXED) == 0
    assert page.read_text() == first


def test_a_study_with_a_point_that_failed_has_a_page_that_says_so(here: Path) -> None:
    wide = ("model=llama3.1-70b,llama3.1-8b", "model.weights_dtype=bf16", "cluster.tensor_parallel_size=1")
    assert run_mine(FIXED, *wide, "experiment.seeds=1") == 3
    page = (here / "sweeps" / "mine" / "index.html").read_text()
    assert "2 clean, 2 failed" in page
    assert "does not fit" in page
