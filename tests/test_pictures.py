"""`servesim page`, and the timeline of `servesim trace`: from a run folder to its pictures."""

import json
from pathlib import Path

import pytest

from servesim import load, run, sweep
from servesim.cli import main
from tests.report.run.runs import SMALL


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run(load(*SMALL)).save(tmp_path / "run")
    return tmp_path / "run"


def test_a_page_is_written_into_the_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["page", str(folder)]) == 0
    assert capsys.readouterr().out.strip() == str(folder / "page.html")
    assert "llama3.1-8b on 2 x h100-sxm" in (folder / "page.html").read_text()


def test_a_page_is_written_elsewhere(folder: Path, tmp_path: Path) -> None:
    assert main(["page", str(folder), "--out", str(tmp_path / "mine.html")]) == 0
    assert (tmp_path / "mine.html").exists()
    assert not (folder / "page.html").exists()


def test_the_page_of_a_study_is_written_into_its_folder_or_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "a_study"
    variants = {"<one>": ["workload.requests=20"], "two": ["workload.requests=30"]}
    sweep(["model=llama3.1-8b", "cluster.tensor_parallel_size=1"], variants=variants, folder=folder, n_jobs=1)
    assert main(["page", str(folder)]) == 0
    assert capsys.readouterr().out.strip() == str(folder / "index.html")
    page = (folder / "index.html").read_text()
    assert "<h1>a_study</h1>" in page
    assert "&lt;one&gt;" in page
    assert main(["page", str(folder), "--out", str(tmp_path / "mine.html")]) == 0
    assert (tmp_path / "mine.html").read_text() == page


def test_a_timeline_is_written_into_the_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", str(folder)]) == 0
    assert "120 requests and" in capsys.readouterr().out
    assert json.loads((folder / "timeline.json").read_text())["otherData"]["left_out"] == 0


def test_a_timeline_has_a_stretch(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", str(folder), "--start", "5", "--end", "6.5"]) == 0
    assert "from 5 to 6.5 s" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["page"], "RUN_FOLDER: is missing"),
        (["page", ""], "RUN_FOLDER: is missing"),
        (["page", "nowhere"], "nowhere: there is no such folder"),
        (
            ["page", "{folder}", "--config-dir", "nowhere"],
            "--config-dir = 'nowhere': there is no such folder",
        ),
        (["page", "a", "b"], "see servesim page --help"),
        (["trace", "{folder}", "--start", "9", "--end", "3"], "must be after --start 9"),
        (["trace", "{folder}", "--start", "1e9"], "the run lasts from"),
        (["trace", "{folder}", "--start", "10000", "--end", "10010"], "from 10000 to 10010 s; the run lasts"),
        (["trace", "{folder}", "--start", "-20", "--end", "-10"], "from -20 to -10 s; the run lasts"),
        (["trace", "{folder}", "--start", "soon"], "see servesim trace --help"),
        (["trace", "{folder}", "--start", "nan"], "--start = nan: must be a number"),
    ],
)
def test_bad_input_is_refused(
    arguments: list[str], words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([word.format(folder=folder) for word in arguments]) == 1
    assert words in capsys.readouterr().err


def test_a_stretch_of_nothing_leaves_the_last_timeline_alone(folder: Path) -> None:
    assert main(["trace", str(folder)]) == 0
    before = (folder / "timeline.json").read_bytes()
    assert main(["trace", str(folder), "--start", "10000", "--end", "10010"]) == 1
    assert (folder / "timeline.json").read_bytes() == before


@pytest.mark.parametrize("verb", ["page", "trace"])
def test_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "--help"]) == 0
    assert f"servesim {verb} RUN_FOLDER" in capsys.readouterr().out
