"""No verb writes over what it reads, nor over what a run or a study has left."""

from pathlib import Path

import pytest

from servesim import load, run
from servesim.cli import main
from servesim.outputs import misnamed, overwritten
from tests.report.run.runs import SMALL

READ, KEPT = "is a file that is read", "is a file of the run itself"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run, its page, another run, a trace and links to them."""
    folder = tmp_path_factory.mktemp("outputs")
    for name in ("run", "other"):
        run(load(*SMALL)).save(folder / name)
    (folder / "run" / "page.html").write_text("a page")
    (folder / "t.csv").write_text("sent_s,input_tokens,output_tokens\n0,5,1\n1,5,1\n")
    (folder / "symbolic.csv").symlink_to(folder / "t.csv")
    (folder / "hard.csv").hardlink_to(folder / "t.csv")
    (folder / "steps.html").symlink_to(folder / "run" / "steps.parquet")
    (folder / "hard.jsonl").hardlink_to(folder / "run" / "requests.parquet")
    return folder


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("trace {0}/t.csv --to mooncake --out {0}/t.csv", READ),
        ("trace {0}/t.csv --to native --out {0}/symbolic.csv", READ),
        ("trace {0}/symbolic.csv --to native --out {0}/hard.csv", READ),
        ("trace {0}/t.csv --out {0}/t.csv", READ),
        ("trace {0}/t.csv --to native --out {0}/run/gaps.parquet", KEPT),
        ("trace {0}/t.csv --out {0}/run/page.html", "is what another verb has left beside the run"),
        ("trace {0}/run --to native --out {0}/run/requests.parquet", KEPT),
        ("trace {0}/run --to native --out {0}/run/steps.parquet", KEPT),
        ("trace {0}/run --to native --out {0}/hard.jsonl", KEPT),
        ("trace {0}/run --out {0}/run/summary.json", KEPT),
        ("page {0}/run --out {0}/other/summary.json", KEPT),
        ("page {0}/run --out {0}/steps.html", KEPT),
        ("page {0}/run --out {0}/run", "is a folder: name the file that is to hold a page"),
        ("page {0}/run --out {0}/x.png", "must end in .html or .htm: what is written is a page"),
        ("export {0}/run --to vllm --out {0}/other/config.yaml", KEPT),
        ("export {0}/run --to vllm --out {0}/run/page.html", "is what another verb has left"),
        ("export {0}/run --to vllm --out {0}/steps.html", KEPT),
    ],
)
def test_what_is_there_is_not_written_over(
    made: Path, arguments: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(made)
    assert main(arguments.format(made).split()) == 1
    assert words in capsys.readouterr().err
    assert contents(made) == before


def test_a_tokenizer_is_read_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("t.json", "tokenizer.json"):
        (tmp_path / name).write_text("[]")
    words = f"trace {tmp_path}/t.json --tokenizer {tmp_path}/tokenizer.json --to native --out"
    assert main([*words.split(), f"{tmp_path}/tokenizer.json"]) == 1
    assert READ in capsys.readouterr().err


def test_a_verb_writes_its_own_output_again(made: Path) -> None:
    for _ in range(2):
        assert main(["trace", str(made / "run"), "--out", str(made / "run" / "timeline.json")]) == 0
        assert main(["export", str(made / "run"), "--to", "vllm"]) == 0
        assert main(["page", str(made / "run"), "--out", str(made / "run" / "page.html")]) == 0


@pytest.mark.parametrize("name", ["study.yaml", "sweep.parquet", "points.log", "finished.json"])
def test_the_files_of_a_study_are_kept(name: str, tmp_path: Path) -> None:
    assert not list(overwritten(tmp_path / name, []))
    for sign in ("study.yaml", "sweep.parquet"):
        (tmp_path / sign).write_text("x")
    assert [problem.message for problem in overwritten(tmp_path / name, [])] == [KEPT]


def test_anywhere_else_any_name_will_do(tmp_path: Path) -> None:
    for name in ("summary.json", "page.html", "x"):
        assert not list(overwritten(tmp_path / name, [tmp_path]))
        assert not list(misnamed(tmp_path / name, (), "the trace"))
    assert not list(misnamed(Path("/dev/null"), (".html",), "a page"))
