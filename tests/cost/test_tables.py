"""Tables on disk: read to the bit, remade where they are not what they should be, and in nobody's way."""

import os
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest

from servesim.cost import tables
from servesim.cost.fitted import FittedStepTime
from servesim.cost.overhead import EngineOverhead
from tests.cost.fitted import NO_OVERHEAD, OVERHEAD, fitted
from tests.cost.shipped import gpu, model

QWEN = model("qwen3-32b")
STEPS = [
    (1, 1, []),
    (64, 100_000, []),
    (700, 10**6, []),
    (0, 0, [(513, 7)]),
    (40, 9_999, [(90, 0), (900, 5)]),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(tables.FOLDER, str(tmp_path / "cache"))
    return tmp_path / "cache"


def built(
    tokens: int = 512, overhead: EngineOverhead = OVERHEAD, gpus: int = 2, **changes: float
) -> FittedStepTime:
    return fitted(QWEN, gpu("h100-sxm", **changes), gpus, overhead=overhead, tokens=tokens)


def told(times: FittedStepTime) -> list[object]:
    """Return times of steps inside the tables and beyond, and every piece of some numbers of sequences."""
    pieces = [
        times.decode(sequences, sequences * length) for sequences in (1, 64, 300) for length in (1, 99, 10**6)
    ]
    return [[times.mixed(*step) for step in STEPS], pieces, times.breakdown(*STEPS[-1])]


def named(folder: Path, name: str) -> Path:
    return folder / f"{name}{tables.SUFFIX}"


def files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


def test_what_is_read_is_what_was_made_to_the_bit(folder: Path) -> None:
    made = told(built())
    (file,) = files(folder)
    before = file.stat().st_mtime_ns
    assert told(built()) == made
    assert files(folder) == [file]
    assert file.stat().st_mtime_ns == before


def test_without_a_cache_times_are_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [told(built()), told(built())]
    monkeypatch.setenv(tables.FOLDER, "")
    assert [told(built())] * 2 == made
    assert tables.cache_folder() is None


def test_a_file_is_read_instead_of_computing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = told(built())

    def fails(*arguments: object) -> None:
        raise AssertionError("computed")

    with monkeypatch.context() as patched:
        patched.setattr("servesim.cost.fitted.straight_pieces", fails)
        times = built()
        assert times.decode(64, 64_000)
    assert told(times) == made


@pytest.mark.parametrize(
    "other",
    [
        lambda: built(tokens=1024),
        lambda: built(overhead=NO_OVERHEAD),
        lambda: built(overhead=replace(OVERHEAD, step_s=8.000001e-4)),
        lambda: built(gpus=4),
        lambda: built(hbm_bytes_per_s=3.36e12),
    ],
)
def test_other_inputs_have_another_file(other: object, folder: Path) -> None:
    built()
    other()  # type: ignore[operator]
    assert len(files(folder)) == 2


def test_other_code_has_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    name = tables.name_of(1)
    assert tables.name_of(1) == name != tables.name_of(2)
    monkeypatch.setattr(tables, "_code", lambda: "other")
    assert tables.name_of(1) != name


@pytest.mark.parametrize(
    "harm", [lambda said: b"", lambda said: said[:-8], lambda said: said[:100] + b"!" + said[101:]]
)
def test_a_harmed_file_is_made_anew(harm: object, folder: Path) -> None:
    made = told(built())
    (file,) = files(folder)
    whole = file.read_bytes()
    file.write_bytes(harm(whole))  # type: ignore[operator]
    assert told(built()) == made
    assert files(folder) == [file]
    assert file.read_bytes() == whole


def test_a_folder_that_cannot_be_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = told(built())
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv(tables.FOLDER, str(tmp_path / "file" / "below"))
    assert told(built()) == made


def test_a_file_that_cannot_be_renamed_into_place_leaves_no_trace(folder: Path) -> None:
    taken = named(folder, "taken")
    taken.mkdir(parents=True)
    tables.write("taken", [np.arange(3.0)])
    assert files(folder) == [taken]


def test_the_oldest_files_go(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_FILES", 3)
    for age, name in enumerate("abcde"):
        tables.write(name, [np.arange(3.0), np.array([])])
        os.utime(named(folder, name), ns=(age, age))
    assert [path.stem for path in files(folder)] == ["c", "d", "e"]
    first, second = tables.read("e") or []
    assert (first.tolist(), second.tolist()) == ([0.0, 1.0, 2.0], [])


@pytest.mark.parametrize("most", [{"MOST_FILES": 1}, {"MOST_BYTES": 0}])
def test_only_files_of_tables_go(most: dict[str, int], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir()
    others = [folder / "mine.txt", folder / ("0" * 32), folder / "inside"]
    for other in others[:2]:
        other.write_text("mine")
        os.utime(other, ns=(0, 0))
    others[2].mkdir()
    named(folder, "taken").mkdir()
    monkeypatch.setattr(tables, *next(iter(most.items())))
    for age, name in enumerate("abc"):
        tables.write(name, [np.arange(3.0)])
        if named(folder, name).exists():
            os.utime(named(folder, name), ns=(age, age))
    left = set(files(folder)) - {*others, named(folder, "taken")}
    assert set(others) <= set(files(folder))
    assert len(left) == most.get("MOST_FILES", 0)


def test_the_oldest_files_go_when_all_are_too_large_together(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "MOST_BYTES", 2500)
    for age, name in enumerate("abcd"):
        tables.write(name, [np.arange(125.0)])  # a kilobyte and a little
        os.utime(named(folder, name), ns=(age, age))
    assert [path.stem for path in files(folder)] == ["c", "d"]


def test_a_file_that_would_be_too_large_is_not_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "LARGEST_BYTES", 8 * 12)
    tables.write("small", [np.arange(10.0)])
    tables.write("large", [np.arange(11.0)])
    assert [path.stem for path in files(folder)] == ["small"]


@pytest.mark.parametrize(
    "words",
    [[], [0], [-1], [2, 1], [1, 3, 0], [2, -1, 2, 0], [10**9, 1, 0], [1, 0], [4, 1, 1, 1, 0, 0, 0, 0]],
)
def test_a_file_of_another_shape_is_made_anew(words: list[int], folder: Path) -> None:
    made = told(built())
    (file,) = files(folder)
    whole, said = file.read_bytes(), np.array(words, dtype="<i8").tobytes()
    file.write_bytes(blake2b(said, digest_size=32).digest() + said)
    assert told(built()) == made
    assert file.read_bytes() == whole


def test_the_folder_is_the_users_where_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(tables.FOLDER)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert tables.cache_folder() == Path("/caches/servesim")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    assert tables.cache_folder() == Path("/home/me/.cache/servesim")
