"""`servesim export` and `servesim metrics`: from a run folder to other tools' files and words."""

import json
from pathlib import Path

import pytest

from servesim import load, run
from servesim.cli import main
from tests.report.run.runs import SMALL


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    run(load(*SMALL, "metrics=guidellm")).save(folder)
    return folder


def test_a_result_file_is_written_into_the_folder(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(made), "--to", "vllm"]) == 0
    assert capsys.readouterr().out.strip() == str(made / "vllm.json")
    read, summary = (json.loads((made / name).read_text()) for name in ("vllm.json", "summary.json"))
    assert read["p99_ttft_ms"] == pytest.approx(1e3 * summary["latency"]["ttft_s"]["p99"])
    assert read["request_goodput"] == pytest.approx(summary["goodput"]["requests_per_s"])
    assert "date" not in read
    before = (made / "vllm.json").read_bytes()
    assert main(["export", str(made), "--to", "vllm"]) == 0
    assert (made / "vllm.json").read_bytes() == before


def test_a_result_file_is_written_elsewhere(made: Path, tmp_path: Path) -> None:
    wanted = tmp_path / "new" / "mine.json"
    assert main(["export", str(made), "--to", "vllm-detailed", "--out", str(wanted)]) == 0
    assert len(json.loads(wanted.read_text())["itls"]) == 120
    assert main(["export", "--to=vllm", "--date=20260131-120000", f"--out={tmp_path}", str(made)]) == 0
    named = tmp_path / "servesim-4.0qps-llama3.1-8b-20260131-120000.json"
    assert json.loads(named.read_text())["date"] == "20260131-120000"


def test_aiperfs_files_go_into_a_folder(made: Path, tmp_path: Path) -> None:
    assert main(["export", str(made), "--to", "aiperf", "--out", str(tmp_path / "aiperf")]) == 0
    names = ["profile_export.jsonl", "profile_export_aiperf.csv", "profile_export_aiperf.json"]
    assert sorted(path.name for path in (tmp_path / "aiperf").iterdir()) == names
    assert len((tmp_path / "aiperf" / names[0]).read_text().splitlines()) == 120


def test_several_runs_go_into_one_file(made: Path, tmp_path: Path) -> None:
    """As `vllm bench sweep` collects them: a list."""
    wanted = tmp_path / "summary.json"
    assert main(["export", str(made), str(made), "--to", "vllm", "--out", str(wanted)]) == 0
    first, second = json.loads(wanted.read_text())
    assert first == second
    assert main(["export", str(made), "--to", "vllm"]) == 0
    assert first == json.loads((made / "vllm.json").read_text())


def test_metrics_are_told_in_the_dialect_of_the_run_or_in_another(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["metrics", str(made)]) == 0
    assert "GuideLLM" in capsys.readouterr().out
    assert main(["metrics", str(made), "--dialect", "aiperf"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "Definitions time_to_first_token: " in printed
    assert "time_to_second_token: second token - first token, per request" in printed


def test_the_metrics_of_a_saved_run_are_those_of_its_summary(made: Path) -> None:
    from servesim.export import _Saved
    from servesim.results.dialects.known import DIALECTS
    from servesim.results.summary import plain

    saved = json.loads((made / "summary.json").read_text())["metrics"]
    assert plain(DIALECTS["guidellm"].section(_Saved.read(made).sample)) == saved


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["export"], ["RUN_FOLDER: is missing", "--to: must be vllm, vllm-detailed or aiperf"]),
        (["export", "{run}", "--to", "genai"], ["--to = 'genai': must be vllm, vllm-detailed or aiperf"]),
        (["export", "{run}", "--to", "vllm", "--date", "today"], ["--date = 'today': must be like 2026"]),
        (["export", "{run}", "--to", "aiperf", "--date", "20260131-120000"], ["goes with vllm"]),
        (["export", "{run}", "{run}", "--to", "vllm"], ["--out: is missing"]),
        (["export", "{run}", "{run}", "--to", "aiperf"], ["takes one run"]),
        (["export", "{run}", "{run}", "--to", "vllm", "--out", "{run}"], ["is a folder"]),
        (["export", "{run}", "--to", "vllm", "--out", "{run}/summary.json"], ["is a file of the run itself"]),
        (["export", "{run}/none", "--to", "vllm"], ["none: there is no such folder"]),
        (["export", "{run}", "--two"], ["see servesim export --help"]),
        (["metrics"], ["RUN_FOLDER: is missing"]),
        (["metrics", "{run}", "--dialect", "bliss"], ["--dialect = 'bliss': must be vllm, aiperf"]),
    ],
)
def test_odd_input_is_one_clear_error(
    made: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: list[str]
) -> None:
    assert main([each.format(run=made) for each in arguments]) == 1
    said = capsys.readouterr().err
    assert all(word in said for word in words), said


@pytest.mark.parametrize("name", ["gaps.parquet", "steps.parquet"])
def test_a_folder_that_is_not_whole_is_refused(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    for path in made.glob("*.*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / name).write_bytes(b"torn")
    assert main(["export", str(tmp_path), "--to", "vllm"]) == 1
    assert f"{name}: cannot be read" in capsys.readouterr().err
    (tmp_path / name).unlink()
    assert main(["export", str(tmp_path), "--to", "vllm"]) == 1
    assert f"{name}: there is no such file" in capsys.readouterr().err


def test_whatever_is_wrong_with_any_folder_is_listed(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a whole run, a torn one, one without two files and none at all."""
    torn, partly = tmp_path / "torn", tmp_path / "partly"
    for folder in (torn, partly):
        folder.mkdir()
        for path in made.glob("*.*"):
            (folder / path.name).write_bytes(path.read_bytes())
    for name in ("summary.json", "requests.parquet", "gaps.parquet"):
        (torn / name).write_bytes(b"{torn")
    for name in ("steps.parquet", "gaps.parquet"):
        (partly / name).unlink()
    folders = [str(made), str(torn), str(partly), str(tmp_path / "nope")]
    out = tmp_path / "out.json"
    assert main(["export", *folders, "--to", "vllm", "--out", str(out)]) == 1
    said = capsys.readouterr().err
    assert said.count("cannot be read") == 3
    assert said.count("there is no such file") == 2
    assert f"{folders[3]}: there is no such folder" in said
    assert "6 problems" in said
    assert not out.exists()


@pytest.mark.parametrize(
    "verb", [["export", "--to", "vllm"], ["export", "--to", "aiperf"], ["metrics"], ["page"], ["trace"]]
)
def test_a_run_to_which_nothing_came_says_so(
    verb: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sending = ("workload/arrivals=constant", "workload.arrivals.rate_rps=1", "horizon_s=0.5")
    run(load(*SMALL, *sending)).save(tmp_path)
    assert main([verb[0], str(tmp_path), *verb[1:]]) == 1
    said = capsys.readouterr().err
    assert "no request arrived in this run: all 120 were to come after the horizon" in said
    assert "version" not in said


def test_each_verb_has_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    for verb, option in (("export", "--to FORMAT"), ("metrics", "--dialect NAME")):
        assert main([verb, "--help"]) == 0
        assert option in capsys.readouterr().out
