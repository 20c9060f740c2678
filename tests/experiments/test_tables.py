"""The table and the figures of a study's README, from a study that is known."""

import re
from pathlib import Path

import pytest

from servesim.cli import main
from tests.shared import ROOT

if not (ROOT / "experiments").is_dir():
    pytest.skip("the studies come with a clone only", allow_module_level=True)

from experiments.__main__ import between, read, write
from experiments.__main__ import main as experiments
from experiments.pictures import drawing
from experiments.studies import STUDIES
from servesim.config.groups import Groups

PARTS = {study.name: study for study in STUDIES}


@pytest.fixture
def swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    small = ["workload.arrivals.concurrency=1,4", "workload.requests=32", "workload/lengths=fixed"]
    assert main(["experiment=kv_wall", "seed=0,1", *small]) == 0
    return tmp_path / "sweeps" / "kv_wall"


def test_every_shipped_study_has_a_folder_with_its_readme() -> None:
    assert sorted(PARTS) == sorted(Groups.of(None).options("experiment"))
    for name in PARTS:
        text = (ROOT / "experiments" / name / "README.md").read_text()
        assert text.count("<!-- table -->") == text.count("<!-- end of the table -->") == 1
        assert f"servesim experiment={name}" in text
        pictures = re.findall(r"!\[[^\]]+\]\((\S+\.svg)\)", text)
        assert pictures
        for picture in pictures:
            assert (ROOT / "experiments" / name / picture).stat().st_size < 150_000


def test_the_table_has_a_row_per_point_with_its_interval_and_difference(swept: Path, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("Before\n<!-- table -->\nold\n<!-- end of the table -->\nAfter\n")
    write(PARTS["kv_wall"], swept, tmp_path, None)
    before, *lines, after = (tmp_path / "README.md").read_text().splitlines()
    assert (before, after) == ("Before", "After")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    heading, _, *body = rows
    assert heading[:3] == ["variant", "users", "Output throughput (tokens/s per GPU)"]
    assert {len(row) for row in rows} == {len(heading)}
    assert [row[:2] for row in body[:2]] == [["H100", "1"], ["H100", "4"]]
    assert len(body) == 6
    assert [bool(row[-1]) for row in body] == [False, False, True, True, True, True]
    assert "old" not in lines


def test_a_difference_is_that_of_the_means(swept: Path) -> None:
    from experiments.tables import table
    from servesim.report.frontier.page import Drawing

    column = "throughput.output_tokens_per_s_per_gpu"
    sweep = read(swept)
    lines = table(Drawing.of(sweep), (column,), column).splitlines()[2:]
    last = lines[-1].strip("| ").split(" | ")
    means = sweep.table.groupby(["variant", "workload.arrivals.concurrency"])[column].mean()
    said = float(last[-1].partition(" ")[0])
    assert said == pytest.approx(means["H200", 4] - means["H100", 4], rel=0.01)


def test_a_readme_without_marks_is_not_touched() -> None:
    with pytest.raises(ValueError, match="needs <!-- table -->"):
        between("no marks", "rows")


def test_an_unknown_study_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        experiments(["kv_wal"])
    assert ended.value.code == 2
    assert "unknown: kv_wal; there are one_user, " in capsys.readouterr().err


def test_saturated_points_do_not_answer_a_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from experiments.tables import table
    from servesim.report.frontier.page import Drawing

    monkeypatch.chdir(tmp_path)
    small = ["seed=0,1", "workload.requests=300", "gpu=l40s", "experiment.load.points=4", "slo=batch"]
    assert main(["experiment=gpu_frontier", *small]) == 0
    sweep = read(tmp_path / "sweeps" / "gpu_frontier")
    seen = Drawing.of(sweep)
    [row] = table(seen, ()).splitlines()[2:]
    load = float(row.strip("| ").split(" | ")[0])
    assert (seen.points.state == "saturated").any()
    assert seen.points.set_index("load").state[load] == "clean"


def test_the_same_sweep_is_drawn_to_the_same_picture(swept: Path, tmp_path: Path) -> None:
    with drawing() as draw:
        if draw is None:
            pytest.skip("needs playwright and chromium")
        figure = PARTS["quantisation"].figures(read(swept))["figure"]
        for name in ("a.svg", "b.svg"):
            draw(figure, tmp_path / name, 840, 480)
    text = (tmp_path / "a.svg").read_text()
    assert text == (tmp_path / "b.svg").read_text()
    assert text.startswith("<svg")
    assert all(label in text for label in ("H100", "H200", "Median interactivity"))
    assert "NaN" not in text
