"""The command: what it prints, what it leaves behind, and its exit status."""

import json
import os
import signal
import subprocess
import sys
import time
from datetime import datetime, tzinfo
from pathlib import Path

import pandas as pd
import pytest
import yaml

from servesim import __version__
from servesim.cli import main
from servesim.config.groups import conf_dir

SMALL = "workload.requests=40"
HEADINGS = [
    *("Model", "Cluster", "Scheduler", "Traffic", "Memory", "Requests", "Latency", "Time", "Throughput"),
    *("Per user", "Goodput", "Cost", "Energy", "Load", "Notes", "Files"),
]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    return tmp_path


def servesim(*arguments: str) -> "subprocess.Popen[str]":
    """Start the command in a process of its own."""
    program = "import sys; from servesim.cli import main; sys.exit(main())"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )


def folders(here: Path) -> list[Path]:
    return sorted(here.glob("runs/*"))


def test_a_run_prints_one_screen(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    printed, complaints = capfd.readouterr()
    lines = printed.splitlines()
    assert len(lines) <= 45
    assert max(map(len, lines)) <= 100
    assert "\x1b" not in printed
    assert [line.split("  ")[0] for line in lines if line[0] != " "][1:] == HEADINGS
    assert "2,000 injected = 2,000 completed" in printed
    assert complaints == ""


def test_a_run_and_several_go_where_they_are_told(here: Path) -> None:
    assert main([SMALL, "--out", "mine/one=1, 2"]) == 0
    assert (here / "mine" / "one=1, 2" / "summary.json").is_file()
    assert main([SMALL, "-m", "seed=1,2", "--out", "mine/both"]) == 0
    assert sorted(path.parent.name for path in here.glob("mine/both/*/summary.json")) == ["0", "1"]
    assert folders(here) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["hydra.run.dir=there"], "--out = 'mine': says again what hydra.run.dir says"),
        (["-m", "seed=1,2", "hydra.sweep.dir=there"], "says again what hydra.sweep.dir says"),
        (["experiment=batching_frontier"], "--out = 'mine': goes with runs alone"),
        (["--cfg", "job"], "--out = 'mine': goes with runs alone"),
    ],
)
def test_a_place_that_goes_with_nothing_is_refused(
    arguments: list[str], words: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([SMALL, *arguments, "--out", "mine"]) == 1
    assert words in capsys.readouterr().err
    assert list(here.iterdir()) == []


def test_a_run_leaves_its_tables_its_summary_and_its_configuration(here: Path) -> None:
    assert main([SMALL, "seed=7"]) == 0
    (folder,) = folders(here)
    tables = ("gaps.parquet", "requests.parquet", "steps.parquet")
    assert sorted(path.name for path in folder.iterdir()) == ["config.yaml", *tables, "summary.json"]
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["accounting"]["injected"] == len(pd.read_parquet(folder / "requests.parquet")) == 40
    assert len(pd.read_parquet(folder / "steps.parquet")) > 0
    assert yaml.safe_load((folder / "config.yaml").read_text())["seed"] == 7


def test_runs_of_the_same_second_have_folders_of_their_own(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Noon(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> "Noon":
            return cls(2026, 1, 2, 12, 0, 0)

    monkeypatch.setattr("servesim.jobs.datetime", Noon)
    assert [main([SMALL]), main([SMALL, "-m", "seed=1,2"]), main([SMALL])] == [0, 0, 0]
    names = ["2026-01-02_12-00-00", "2026-01-02_12-00-00_2", "2026-01-02_12-00-00_3"]
    assert [folder.name for folder in folders(here)] == names


def test_the_folder_can_be_chosen_as_in_any_hydra_application(here: Path) -> None:
    assert main([SMALL, "hydra.run.dir=mine/x"]) == 0
    assert (here / "mine" / "x" / "summary.json").is_file()
    assert not folders(here)


def rows_below_the_headings(lines: list[str]) -> list[list[str]]:
    """Return the cells of the rows of a comparison: what stands between its headings and a blank line."""
    start = next(number for number, line in enumerate(lines) if line.startswith("#")) + 1
    return [line.split() for line in lines[start : lines.index("", start)]]


def test_several_runs_are_compared_in_a_table(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([SMALL, "-m", "scheduler=static,continuous,disaggregated"]) == 0
    printed, complaints = capfd.readouterr()
    lines = printed.splitlines()
    assert lines[:3] == [
        f"{n}  scheduler={k}" for n, k in enumerate(("static", "continuous", "disaggregated"))
    ]
    rows = rows_below_the_headings(lines)
    assert [row[0] for row in rows] == ["0", "1", "2"]
    assert all(row[10].rstrip(",") in ("met", "MISSED") for row in rows)
    assert complaints == ""
    (folder,) = folders(here)
    found = [json.loads((folder / str(n) / "summary.json").read_text()) for n in range(3)]
    assert [summary["scenario"]["scheduler"]["kind"] for summary in found] == [
        "static",
        "continuous",
        "disaggregated",
    ]


def test_every_job_runs_and_the_worst_status_counts(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["-m", SMALL, "horizon_s=null,2,-1"]) == 1
    printed, complaints = capfd.readouterr()
    outcomes = [" ".join(row[10:]) for row in rows_below_the_headings(printed.splitlines())]
    assert outcomes == ["met", "MISSED, NOT CLEAN", "error"]
    assert "horizon_s = -1: must be above 0 and at most 1e+09 (s)" in complaints
    assert main(["-m", SMALL, "horizon_s=2,null"]) == 3


def test_truth_values_are_told_as_they_are_typed(capfd: pytest.CaptureFixture[str]) -> None:
    main(["-m", SMALL, "steady=true,false"])
    assert capfd.readouterr().out.splitlines()[:2] == ["0  steady=true", "1  steady=false"]


def test_what_is_wrong_with_every_job_is_told_once(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["-m", "sed=3", "workload.arrivals.rate_rps=1,x"]) == 1
    printed, complaints = capfd.readouterr()
    assert printed == ""
    assert complaints.splitlines()[0] == "2 problems in the input:"
    assert "did you mean seed?" in complaints


def test_a_run_that_leaves_requests_over_is_not_clean(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([SMALL, "horizon_s=2"]) == 3
    assert "NOT CLEAN" in capfd.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["workload.arrivals.rate_rps=0"],
        ["gpu=mi300x", "seed=x"],
        ["-m", "gpu=h100-sxm,mi300x"],
        ["-m", "workload=trace", "workload/arrivals=gamma,poisson"],
        ["nonsense"],
        ["+=3"],
        ["--resolve"],
        ["-m", "seed=glob(*)"],
        ["-m", "gpu=glob(nothing*)"],
        ["engine_overhead.engine=a**b"],
        ["seed=${nothing}"],
        ["gpu="],
        ["gpu=null"],
        ["--nonsense"],
        ["--config-dir", "nowhere"],
        ["--config-dir", "."],
        ["--config-path", "x"],
        ["--config-name", "nowhere"],
        ["--cfg", "nothing"],
        ["-m", "--cfg", "job"],
        ["-m", "seed=interval(1,2)"],
        ["-m", "horizon_s=[1],[2]"],
        ["hydra.nothing=1"],
        ["hydra/launcher=nothing"],
        ["hydra.run.dir=/proc/nowhere"],
        ["workload=trace", "workload.path=nowhere.csv"],
    ],
)
def test_bad_input_is_refused_in_a_few_lines(
    arguments: list[str], here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 1
    printed, complaints = capfd.readouterr()
    assert printed == ""
    assert 1 <= len(complaints.splitlines()) <= 4
    assert "Traceback" not in complaints
    assert not [path for path in folders(here) if not (path / "multirun.yaml").exists()]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["expain", "--batch", "8"], "did you mean explain?"),
        (["expain"], "expain: there is no such verb; did you mean explain?"),
        (["Trace", "runs/x"], "did you mean trace?"),
        (["nonsense"], "is not an override; write key=value"),
        (["page=3"], "page"),
        (
            ["cluster.tensor_parallel_size=3"],
            "the 8 KV heads (or be a multiple of 8) and the intermediate size 28672 of llama3.1-70b",
        ),
        (
            ["scheduler=disaggregated", "cluster.tensor_parallel_size=4"],
            "set cluster.prefill.tensor_parallel_size and cluster.decode.tensor_parallel_size",
        ),
        (["scheduler.enable_chunked_prefill=false"], "or set scheduler.max_model_len=8192"),
    ],
)
def test_what_was_probably_meant_is_named(
    arguments: list[str], words: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 1
    assert words in capfd.readouterr().err


def test_prompts_need_not_be_split_where_all_are_short(here: Path) -> None:
    whole = ["scheduler.enable_chunked_prefill=false", "scheduler.max_model_len=8192"]
    assert main([SMALL, *whole]) in (0, 3)


def test_options_may_stand_anywhere(here: Path) -> None:
    (here / "mine" / "slo").mkdir(parents=True)
    (here / "mine" / "slo" / "strict.yaml").write_text("ttft_s: 0.001\nattainment: 1.0\n")
    assert main([SMALL, "--config-dir", "mine", "slo=strict"]) == 0
    summary = json.loads((folders(here)[0] / "summary.json").read_text())
    assert summary["goodput"]["limits"]["ttft_s"] == 0.001
    assert main(["seed=1", "-m", "slo=strict,batch", "--config-dir=mine", SMALL]) == 0


def test_cfg_prints_the_configuration_and_runs_nothing(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["scheduler=static", "--cfg", "job"]) == 0
    printed = yaml.safe_load(capfd.readouterr().out)
    assert printed["scheduler"]["kind"] == "static"
    assert "hydra" not in printed
    assert not folders(here)


def test_help_shows_the_options_of_every_group(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    printed = capfd.readouterr().out
    assert all(name in printed for name in ("h100-sxm", "llama3.1-70b", "disaggregated", "closed_loop", "-m"))
    lines = [line for line in printed.splitlines() if str(conf_dir()) not in line]
    assert max(map(len, lines)) <= 100


def test_help_shows_the_options_of_the_users_folder_too(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("gpu/mine.yaml", "cluster/large.yaml", "empty/x.txt"):
        (here / "mine" / name).parent.mkdir(parents=True)
        (here / "mine" / name).touch()
    assert main(["--help", "--config-dir", "mine"]) == 0
    rows = [line.split() for line in capfd.readouterr().out.splitlines()]
    assert "mine," in next(row for row in rows if row[:1] == ["gpu"])
    assert [row for row in rows if row[:1] == ["cluster"]] == [
        ["cluster", "continuous,", "disaggregated,", "large,", "static"]
    ]
    assert not [row for row in rows if row[:1] == ["empty"]]


def test_version_is_the_packages(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capfd.readouterr().out == f"servesim {__version__}\n"


@pytest.mark.parametrize("statement", ["import servesim", "from servesim.cli import main; main(['--help'])"])
def test_nobody_pays_for_imports_that_are_not_needed(statement: str) -> None:
    program = f"import sys; {statement}; print(*sys.modules, file=sys.stderr)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert not {"numpy", "pandas", "scipy", "hydra", "omegaconf", "plotly", "rich"} & set(done.stderr.split())


def test_a_run_imports_neither_pandas_nor_scipys_slow_parts() -> None:
    program = (
        f"import sys; from servesim.cli import main; main(['{SMALL}']); print(*sys.modules, file=sys.stderr)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert not {"pandas", "scipy.stats", "scipy.optimize", "plotly"} & set(done.stderr.split())


@pytest.mark.parametrize("module", ["servesim", "servesim.cli"])
def test_it_runs_as_a_module(module: str) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", module, "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == f"servesim {__version__}\n"


def test_a_terminal_may_lack_letters(here: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "servesim", SMALL, "model.name=modèle"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=here)
    assert "mod?le" in done.stdout


@pytest.mark.parametrize(
    ("told", "line"),
    [
        ((28, "No space left on device"), "servesim: No space left on device"),
        ((13, "Permission denied", "x"), "servesim: x: Permission denied"),
        (("odd",), "servesim: odd"),
    ],
)
def test_an_error_of_the_system_names_its_file_if_it_has_one(
    told: tuple[object, ...], line: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fails(arguments: object) -> int:
        raise OSError(*told)

    monkeypatch.setattr("servesim.cli._dispatch", fails)
    assert main([]) == 1
    assert capfd.readouterr().err == f"{line}\n"


def test_an_interrupted_run_says_so_in_one_line(here: Path) -> None:
    process = servesim("workload.requests=100000000")
    while not list(here.glob("runs/*/*.parquet")) and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    printed, complaints = process.communicate(timeout=60)
    assert (process.returncode, printed, complaints) == (130, "", "servesim: interrupted\n")


def test_a_reader_who_leaves_early_is_no_error() -> None:
    process = servesim(SMALL)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert process.wait(timeout=60) == 0
