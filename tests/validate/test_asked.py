"""Names and folders of a command line: columns in any spelling, files of one name kept apart."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from servesim.check import ConfigError
from servesim.cli import main
from servesim.validate.held_out import held_out_lines
from servesim.validate.points import points_of
from servesim.validate.readers.content import read_content
from servesim.validate.readers.selection import chosen
from servesim.validate.replay import base
from servesim.validate.terms import of_runs
from servesim.validation import validate
from tests.validate.runs import OVERRIDES, rows_of, small, vllm_result, write_csv, write_json

ROWS = [
    {"Tensor Parallel": tp, "conc": users, "input_len": 100, "osl": 10, "engine": name, "ttft_ms": 5}
    for tp, users, name in ((1, 2, "a"), (2, 2, "a"), (2, 8, "b"))
]


@pytest.mark.parametrize(
    ("where", "lines"),
    [
        ({"tp": "2"}, [3, 4]),
        ({"tensor_parallel_size": "2.0"}, [3, 4]),
        ({"Tensor Parallel": "2"}, [3, 4]),
        ({"concurrency": "2", "isl": "100"}, [2, 3]),
        ({"engine": "b"}, [4]),
    ],
)
def test_columns_are_named_as_the_file_has_them_or_in_any_known_spelling(
    tmp_path: Path, where: dict[str, str], lines: list[int]
) -> None:
    content = read_content(write_csv(tmp_path / "points.csv", ROWS))
    assert [row.line for row in chosen(content, where)] == lines
    points = points_of(content, {}, None, None)
    assert sorted(held_out_lines(points, where, content)) == lines


def test_names_of_no_column_are_refused(tmp_path: Path) -> None:
    content = read_content(write_csv(tmp_path / "points.csv", ROWS))
    with pytest.raises(ConfigError, match=r"is no column of points\.csv"):
        chosen(content, {"backend": "vllm"})
    with pytest.raises(ConfigError, match="points are told apart by"):
        held_out_lines(points_of(content, {}, None, None), {"backend": "vllm"}, content)


def test_runs_are_held_out_by_their_columns_in_any_spelling() -> None:
    runs = [replace(small(), labels={"tp": tp, "qps": "1.0"}) for tp in ("1", "2")]
    scenario = base(["model=llama3.1-8b"])
    for condition in ({"tp": "2"}, {"tensor_parallel": "2"}, {"tp": "2", "qps": "1"}):
        assert of_runs(runs, scenario, [("tpot", "mean")], condition).held_out.tolist() == [False, True]
    with pytest.raises(ConfigError, match="the columns of --by: tp and qps"):
        of_runs(runs, scenario, [("tpot", "mean")], {"scenario": "chat"})


def test_files_of_one_name_keep_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write_csv(tmp_path / folder / "run.csv", rows_of(small()))
        assert main(["validate", f"{folder}/run.csv", *OVERRIDES]) == 0
        assert (tmp_path / "validation" / folder / "run" / "index.html").is_file()
    assert main(["validate", "a/run.csv", "b/run.csv", *OVERRIDES, "--jobs", "1", "--out", "both"]) == 0
    said = json.loads((tmp_path / "both" / "comparison.json").read_text())
    assert [run["measured"]["source"] for run in said["runs"]] == ["a/run.csv", "b/run.csv"]


def test_files_that_take_the_place_of_earlier_ones_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "run.csv", rows_of(small()))
    for told in (False, True):
        assert main(["validate", "run.csv", *OVERRIDES]) == 0
        assert ("earlier ones replaced" in " ".join(capfd.readouterr().out.split())) is told


def test_a_summary_is_compared_by_its_means_at_made_up_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    summary = {
        "request_rate": 4.0,
        "completed": 40,
        "total_input_tokens": 8000,
        "total_output_tokens": 800,
        "request_throughput": 3.9,
        "output_throughput": 78.0,
        **{f"{name}_{metric}_ms": 20.0 for name in ("mean", "median", "p99") for metric in ("ttft", "tpot")},
    }
    write_json(tmp_path / "run.json", summary)
    assert main(["validate", "run.json", *OVERRIDES]) == 0
    printed = " ".join(capfd.readouterr().out.split())
    assert "40 requests, at made-up times, 4/s" in printed
    assert "only means are compared" in printed
    said = json.loads((tmp_path / "validation" / "run" / "comparison.json").read_text())
    errors = {(row["metric"], row["statistic"]): row["error"] for row in said["runs"][0]["figures"]}
    assert {figure for figure, error in errors.items() if error is None} == {
        (metric, statistic) for metric in ("ttft", "tpot") for statistic in ("p50", "p99")
    }
    with pytest.raises(ConfigError, match="only means can be compared"):
        validate(["run.json", *OVERRIDES, "--tolerance", "ttft.p99=5%"])


def test_a_run_that_was_due_at_once_is_told_as_it_is_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    spread = small()
    together = replace(spread, sent_s=np.zeros(spread.requests))
    for name, run, told in (
        ("spread", spread, "at their recorded times"),
        ("together", together, "all at once"),
    ):
        write_json(tmp_path / f"{name}.json", vllm_result(run, request_rate="inf"))
        assert main(["validate", f"{name}.json", *OVERRIDES]) == 0
        assert told in " ".join(capfd.readouterr().out.split())
