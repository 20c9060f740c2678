"""Files that are there as a whole or not at all."""

import os
from pathlib import Path

import pytest

from servesim.files import in_one_go


def test_a_file_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for said in ("first", "second"):
        with in_one_go(path) as beside:
            beside.write_text(said)
        assert path.read_text() == said
    assert list(tmp_path.iterdir()) == [path]


def test_a_writing_that_ends_early_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("whole")

    def interrupted() -> None:
        with in_one_go(path) as beside:
            beside.write_text("ha")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "whole"
    assert list(tmp_path.iterdir()) == [path]


def test_two_writers_do_not_meet(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with in_one_go(path) as first, in_one_go(path) as second:
        assert first != second
        first.write_text("first")
        second.write_text("second")
    assert path.read_text() == "first"


def test_an_error_names_the_file_that_was_meant(tmp_path: Path) -> None:
    (tmp_path / "folder" / "full").mkdir(parents=True)
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "folder", tmp_path / "file" / "x"):
        with pytest.raises(OSError) as caught, in_one_go(path) as beside:
            beside.write_text("x")
        assert caught.value.filename == str(path)
    with pytest.raises(OSError, match="no room"), in_one_go(tmp_path / "x"):
        raise OSError("no room")


def test_the_folder_of_a_file_is_made(tmp_path: Path) -> None:
    with in_one_go(tmp_path / "a" / "b" / "x") as beside:
        beside.write_text("x")
    assert (tmp_path / "a" / "b" / "x").read_text() == "x"


def test_a_link_and_what_is_no_file_stay_what_they_are(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "x")
    with in_one_go(link) as beside:
        beside.write_text("x")
    assert link.is_symlink()
    assert (tmp_path / "x").read_text() == "x"
    with in_one_go(Path(os.devnull)) as beside:
        beside.write_text("x")
    assert not Path(os.devnull).is_file()
