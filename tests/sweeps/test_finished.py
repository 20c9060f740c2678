"""The mark of a finished sweep holds only for as long as nothing behind the table has changed."""

from pathlib import Path

import pytest

from servesim.config.groups import Groups
from servesim.sweeps.finished import NAME, Finished
from servesim.sweeps.study import Study
from servesim.sweeps.table import NAME as TABLE


@pytest.fixture
def own(tmp_path: Path) -> Path:
    folder = tmp_path / "own"
    (folder / "gpu").mkdir(parents=True)
    (folder / "gpu" / "mine.yaml").write_text("name: mine\n")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "sweep"
    place.mkdir()
    (place / TABLE).write_bytes(b"table")
    return place


def mark(folder: Path, own: Path, study: Study | None = None) -> Finished:
    return Finished(folder, study or Study(), Groups.of(own))


def test_a_mark_holds_until_it_is_taken_away(folder: Path, own: Path) -> None:
    assert not mark(folder, own).holds()
    mark(folder, own).write([])
    assert mark(folder, own).holds()
    mark(folder, own).remove()
    assert not mark(folder, own).holds()


def test_a_mark_is_of_one_study_one_table_and_the_options_at_hand(folder: Path, own: Path) -> None:
    trace = own / "trace.csv"
    trace.write_text("x")
    mark(folder, own).write([str(trace)])
    assert not mark(folder, own, Study(seeds=2)).holds()
    for path in (folder / TABLE, own / "gpu" / "mine.yaml", trace):
        before = path.read_bytes()
        path.write_bytes(b"other")
        assert not mark(folder, own).holds(), path
        path.write_bytes(before)
        assert mark(folder, own).holds(), path
    trace.unlink()
    assert not mark(folder, own).holds()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"made_from": 3}', '{"made_from": {"files": null}}'])
def test_a_torn_mark_does_not_hold(text: str, folder: Path, own: Path) -> None:
    (folder / NAME).write_text(text)
    assert not mark(folder, own).holds()
