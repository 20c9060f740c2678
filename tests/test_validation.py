"""`servesim validate`: the command, its screen, its files and its exit status."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from servesim.check import ConfigError
from servesim.cli import main
from servesim.results.result import Result
from servesim.validate.simulated import observed
from servesim.validation import validate
from tests.validate.runs import OVERRIDES, exported, rows_of, served, vllm_result, write_csv, write_json

POINTS = [
    {"isl": 200, "osl": 20, "concurrency": users, "tp": tp, "ttft_ms": 50.0, "tpot_ms": 10.0}
    for tp in (1, 2)
    for users in (2, 4)
]
SIZELESS = [text for text in OVERRIDES if "tensor_parallel_size" not in text]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def result() -> Result:
    return served()


def ten_per_cent_slower(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"ttft_s": 1.1 * row["ttft_s"]}


def problems(*arguments: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        validate(arguments)
    return [str(problem) for problem in caught.value.problems]


def test_a_run_is_compared_on_the_screen_and_in_files(
    result: Result, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    exported(result, here / "run.csv", ten_per_cent_slower)
    assert main(["validate", "run.csv", *OVERRIDES]) == 0
    printed, complaints = capfd.readouterr()
    assert complaints == ""
    rows = {" ".join(words[:3]): words for line in printed.splitlines() if (words := line.split())}
    assert rows["TTFT p50 (ms)"][-1] == "-9.1%"
    assert "+0.0%" in rows["E2E mean (s)"]
    assert "120 requests, at their recorded times" in printed
    assert "median absolute error of a request: TTFT 9.1%" in printed
    assert "validation/run/: index.html, comparison.json" in printed
    said = json.loads((here / "validation" / "run" / "comparison.json").read_text())
    errors = {(row["metric"], row["statistic"]): row["error"] for row in said["runs"][0]["figures"]}
    assert errors["ttft", "mean"] == pytest.approx(-1 / 11)
    assert errors["e2e", "p99"] == 0
    assert said["runs"][0]["measured"]["requests"] == 120
    assert said["runs"][0]["ks"]["e2e"] == {"ks": 0.0, "measured_n": 120, "simulated_n": 120}
    assert said["scenario"]["model"]["name"] == "llama3.1-8b"
    assert (here / "validation" / "run" / "index.html").is_file()


@pytest.mark.parametrize(("tolerance", "status"), [("ttft.mean=9.1%", 0), ("ttft.mean=9% e2e.p50=1%", 4)])
def test_a_missed_tolerance_is_the_exit_status(
    result: Result, here: Path, capfd: pytest.CaptureFixture[str], tolerance: str, status: int
) -> None:
    exported(result, here / "run.csv", ten_per_cent_slower)
    assert main(["validate", "run.csv", *OVERRIDES, "--tolerance", tolerance, "--out", "here"]) == status
    printed = capfd.readouterr().out
    assert ("MISSED: ttft.mean 9.1%, at most 9.0%" in printed) is (status == 4)
    said = json.loads((here / "here" / "comparison.json").read_text())
    assert [row["met"] for row in said["tolerances"]] == ([True] if status == 0 else [False, True])


def test_several_runs_are_a_row_each_and_have_a_knee(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for rate in (2, 40):
        run = observed(served(f"workload.arrivals.rate_rps={rate}"))
        write_json(here / f"{rate}.json", vllm_result(run, request_rate=float(rate)))
    assert main(["validate", "2.json", "40.json", *OVERRIDES, "--ttft-limit", "0.1", "--jobs", "1"]) == 0
    printed = capfd.readouterr().out
    rows = {words[0]: words for line in printed.splitlines() if (words := line.split())}
    assert rows["2.json"][1:3] == ["120", "2/s"]
    assert "p99 TTFT passes 0.1 s: measured at 40/s, simulated at 40/s (+0.0%)" in printed
    assert "vllm bench serve" in printed
    said = json.loads((here / "validation" / "2" / "comparison.json").read_text())
    assert [knee["error"] for knee in said["knees"]] == [0]
    assert [run["measured"]["request_rate"] for run in said["runs"]] == [2.0, 40.0]


def test_rows_of_a_table_are_runs_by_a_column(
    result: Result, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = [row | {"half": n // 60, "kind": "a"} for n, row in enumerate(rows_of(observed(result)))]
    write_csv(here / "run.csv", rows)
    command = f"run.csv {' '.join(OVERRIDES)} --by half --where kind=a --jobs 1"
    assert validate(shlex.split(command)) == 0
    printed = capfd.readouterr().out
    assert [line.split()[:2] for line in printed.splitlines() if "half=" in line] == [
        ["half=0", "60"],
        ["half=1", "60"],
    ]


def test_users_that_a_file_does_not_tell_are_given(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    closed = served("workload/arrivals=closed_loop", "workload.arrivals.concurrency=5")
    exported(closed, here / "run.csv")
    assert (
        validate(["run.csv", *OVERRIDES, "--max-concurrency", "5", "--tolerance", "e2e.ks=0 ttft.p99=0%"])
        == 0
    )
    printed = " ".join(capfd.readouterr().out.split())
    assert "5 users, each the next when the last has ended" in printed
    write_json(here / "run.json", vllm_result(observed(closed), max_concurrency=7, request_rate="inf"))
    assert problems("run.json", "--max-concurrency", "5") == ["--max-concurrency = 5: run.json says 7"]


def test_summaries_are_compared_by_what_they_have(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    summary = {
        "request_rate": 4.0,
        "completed": 40,
        "total_input_tokens": 8000,
        "total_output_tokens": 800,
        "request_throughput": 3.9,
        "output_throughput": 78.0,
        "mean_ttft_ms": 20.0,
        "p99_tpot_ms": 8.0,
    }
    write_json(here / "run.json", summary)
    assert validate(["run.json", *OVERRIDES]) == 0
    printed = capfd.readouterr().out
    assert "TTFT mean (ms)" in printed
    assert "TTFT p50" not in printed
    assert "replayed with the mean lengths of all" in " ".join(printed.split())
    assert [text.split(":")[0] for text in problems("run.json", *OVERRIDES, "--tolerance", "ttft.ks=1")] == [
        "--tolerance = 'ttft.ks'"
    ]


def test_requests_that_do_not_complete_make_the_status_3(result: Result, here: Path) -> None:
    def longer(row: dict[str, Any]) -> dict[str, Any]:
        return row | ({"input_tokens": 50_000} if row["output_tokens"] % 7 == 0 else {})

    exported(result, here / "run.csv", longer)
    assert validate(["run.csv", *OVERRIDES, "scheduler.max_model_len=8192"]) == 3


def test_points_are_compared_one_run_each(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_csv(here / "points.csv", POINTS)
    assert validate(["points.csv", *SIZELESS, "--jobs", "1", "--tolerance", "tpot.mape=90%"]) == 0
    printed = capfd.readouterr().out
    lines = [line.split() for line in printed.splitlines()]
    assert ["TPOT", "mean", "tp=2"] in [words[:3] for words in lines]
    assert len([words for words in lines if words[:3] == ["TTFT", "mean", "(ms)"]]) == 4
    assert len([words for words in lines if words[:4] == ["TPOT", "mean", "(ms)", "2"]]) == 2
    said = json.loads((here / "validation" / "points" / "comparison.json").read_text())
    assert len(said["points"]) == 8
    assert {row.get("by") for row in said["scores"]} == {None, "tp", "concurrency"}
    assert said["tolerances"][0]["met"]
    assert validate(["points.csv", *SIZELESS, "--jobs", "1", "--tolerance", "tpot.mape=1%"]) == 4


def test_what_is_wrong_with_all_files_and_options_is_listed(here: Path) -> None:
    (here / "a.json").write_text("{")
    found = problems("a.json", "absent.json", "--isl", "0", "--ttft-limit", "nan", "--where", "tp")
    assert [text.split(":")[0].split(" = ")[0] for text in found] == [
        "--isl",
        "--where",
        "a.json",
        "absent.json",
        "--ttft-limit",
    ]
    assert problems() == ["RUN: is missing: a file that a benchmark has left"]


def test_options_of_the_other_kind_are_refused(result: Result, here: Path) -> None:
    exported(result, here / "run.csv")
    write_csv(here / "points.csv", POINTS)
    assert problems("run.csv", "--isl", "5")[0].startswith("--isl = 5: goes with")
    assert problems("points.csv", "--max-concurrency", "5")[0].startswith(
        "--max-concurrency = 5: does not go"
    )
    assert problems("points.csv", "--by", "tp")[0].startswith("--by: does not go")
    assert problems("points.csv", "run.csv")[0].startswith("points.csv: is a table of closed-loop points")
    assert problems("run.csv", "--tolerance", "ttft.mape=1%")[0].startswith("--tolerance")


def test_help_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert validate(["--help"]) == 0
    printed = capsys.readouterr().out
    assert all(option in printed for option in ("--tolerance", "--where", "--by", "--isl", "--out", "--jobs"))
    assert max(map(len, printed.splitlines())) <= 110
