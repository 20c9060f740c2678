"""Reading the Azure format: every row is read, or refused with its line."""

from __future__ import annotations

import re
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim.check import ConfigError
from servesim.workload.batch import BATCH_ROWS
from servesim.workload.formats import csv_chunk, faults, read

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens"
DAY = "2023-11-16 18:15:4"


def write(folder: Path, *lines: str, end: str = "\r\n") -> Path:
    path = folder / "trace.csv"
    path.write_bytes(end.join(lines).encode())
    return path


def refusals(path: Path) -> list[str]:
    with chdir(path.parent), pytest.raises(ConfigError) as refused:  # a long path would be cut in messages
        read(Path(path.name), "azure")
    return [str(problem).replace(repr(path.name), "FILE") for problem in refused.value.problems]


@pytest.mark.parametrize("end", ["\r\n", "\n", "\r"])
def test_rows_are_read_in_the_order_of_the_file(tmp_path: Path, end: str) -> None:
    path = write(tmp_path, HEADER, f"{DAY}7.0000001,374,44", f"{DAY}6.6805900,396,0", end=end)
    recording = read(path, "azure")
    assert recording.time_ns.tolist() == [1_700_158_547_000_000_100, 1_700_158_546_680_590_000]
    assert recording.input_tokens.tolist() == [374, 396]
    assert recording.output_tokens.tolist() == [44, 0]


def test_columns_are_found_by_name(tmp_path: Path) -> None:
    path = write(tmp_path, "\ufeffGeneratedTokens, model,TIMESTAMP , ContextTokens", '1,"a, b",0.5, 2', "")
    assert [column.tolist() for column in read(path, "azure")[:3]] == [[500_000_000], [2], [1]]


def test_empty_lines_are_no_rows_but_count_as_lines(tmp_path: Path) -> None:
    path = write(tmp_path, "", HEADER, "", "0,1,1", "", "1,1,1", "", "")
    assert read(path, "azure").size == 2
    [problem] = refusals(write(tmp_path, HEADER, "", "0,1,1", "", "1,0,1"))
    assert problem.startswith("path, line 5, ContextTokens = '0'")


@pytest.mark.parametrize("rows", [1, BATCH_ROWS - 1, BATCH_ROWS, BATCH_ROWS + 1, 20_000])
def test_no_row_is_lost_between_chunks(tmp_path: Path, rows: int) -> None:
    path = write(tmp_path, HEADER, *(f"{row},{row + 1},{row}" for row in range(rows)))
    recording = read(path, "azure")
    assert recording.time_ns.tolist() == [row * 10**9 for row in range(rows)]
    assert recording.input_tokens.tolist() == list(range(1, rows + 1))
    assert recording.output_tokens.tolist() == list(range(rows))


TOKENS = "to 1,000,000,000 (tokens)"


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("5,,1", f"path, line 3, ContextTokens = '': must be a whole number from 1 {TOKENS}"),
        ("5,0,1", f"path, line 3, ContextTokens = '0': must be a whole number from 1 {TOKENS}"),
        ("5,-3,1", f"path, line 3, ContextTokens = '-3': must be a whole number from 1 {TOKENS}"),
        ("5,nan,1", f"path, line 3, ContextTokens = 'nan': must be a whole number from 1 {TOKENS}"),
        ("5,12.5,1", f"path, line 3, ContextTokens = '12.5': must be a whole number from 1 {TOKENS}"),
        ("5,1,-1", f"path, line 3, GeneratedTokens = '-1': must be a whole number from 0 {TOKENS}"),
        ("5,1,inf", f"path, line 3, GeneratedTokens = 'inf': must be a whole number from 0 {TOKENS}"),
        ("5,1,many", f"path, line 3, GeneratedTokens = 'many': must be a whole number from 0 {TOKENS}"),
        ("5,1", "path, line 3 = '5,1': must have 3 cells, as the header has"),
        ("5,1,1,1", "path, line 3 = '5,1,1,1': must have 3 cells, as the header has"),
        (" ", "path, line 3 = '': must have 3 cells, as the header has"),
    ],
)
def test_a_bad_row_is_refused_with_its_line(tmp_path: Path, row: str, problem: str) -> None:
    assert refusals(write(tmp_path, HEADER, "0,1,1", row, "9,1,1")) == [problem]


@pytest.mark.parametrize("time", ["", "nan", "-1", "inf", "1e300", "noon"])
@pytest.mark.parametrize("good", ["0.5", f"{DAY}6.5"])
def test_a_bad_time_is_refused_with_its_line(tmp_path: Path, time: str, good: str) -> None:
    [problem] = refusals(write(tmp_path, HEADER, f"{time},1,1", f"{good},1,1"))
    assert problem.startswith(
        f"path, line 2, TIMESTAMP = '{time}': must be seconds from 0 to 9,000,000,000, or in"
    )


def test_a_short_row_may_come_first_and_lack_its_time(tmp_path: Path) -> None:
    path = write(tmp_path, "ContextTokens,GeneratedTokens,TIMESTAMP", "1,1", f"1,1,{DAY}6")
    assert refusals(path) == ["path, line 2 = '1,1': must have 3 cells, as the header has"]


def test_seconds_among_timestamps_are_refused(tmp_path: Path) -> None:
    [problem] = refusals(write(tmp_path, HEADER, "0.5,1,1", f"{DAY}6,1,1"))
    assert problem.startswith("path, line 2, TIMESTAMP = '0.5'")


def test_days_that_do_not_exist_are_refused(tmp_path: Path) -> None:
    [problem] = refusals(write(tmp_path, HEADER, f"{DAY}6,1,1", "2023-02-30 00:00:00,1,1"))
    assert problem.startswith("path, line 3, TIMESTAMP = '2023-02-30 00:00:00'")


def test_epoch_milliseconds_are_refused(tmp_path: Path) -> None:
    assert len(refusals(write(tmp_path, HEADER, "1700158546680,1,1"))) == 1
    path = write(tmp_path, HEADER, "1700158546.5,1,1")
    assert read(path, "azure").time_ns.tolist() == [1_700_158_546_500_000_000]


def test_all_bad_values_are_listed_up_to_20_and_the_rest_counted(tmp_path: Path) -> None:
    rows = ["0,1,1"] * 9000
    rows[3] = "x,0,-1"
    rows[8500:8530] = ["1,1"] * 30
    problems = refusals(write(tmp_path, HEADER, *rows))
    assert [problem.split(" = ")[0] for problem in problems[:4]] == [
        "path, line 5, TIMESTAMP",
        "path, line 5, ContextTokens",
        "path, line 5, GeneratedTokens",
        "path, line 8502",
    ]
    assert problems[20:] == ["path = FILE: 13 more values are wrong"]


@given(st.lists(st.sampled_from(["0,1,1", "1,0,1", "1,1,x", "-1,1,1", "3", ""]), min_size=1, max_size=40))
def test_every_row_is_read_or_refused(rows: list[str]) -> None:
    """Lines with content are the recording's rows, or each bad one is a problem with its line."""
    bad = [line for line, row in enumerate(rows, start=2) if row not in ("0,1,1", "")]
    good = rows.count("0,1,1")
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setattr(csv_chunk, "BATCH_ROWS", 4)
        patch.setattr(faults, "MOST_LISTED", 100)
        path = write(Path(folder), HEADER, *rows)
        if bad:
            assert [int(re.findall(r"line (\d+)", text)[0]) for text in refusals(path)] == bad
        elif good:
            assert read(path, "azure").time_ns.size == good


def test_a_file_without_rows_is_refused(tmp_path: Path) -> None:
    assert refusals(write(tmp_path, "")) == ["path = FILE: is an empty file"]
    assert refusals(write(tmp_path, HEADER)) == ["path = FILE: is an empty trace: no rows below its header"]
    assert refusals(write(tmp_path, HEADER, "", "")) == refusals(write(tmp_path, HEADER))


def test_columns_must_be_named(tmp_path: Path) -> None:
    [problem] = refusals(write(tmp_path, "TIMESTAMP,Context,GeneratedTokens", "0,1,1"))
    assert problem.endswith("once each; ContextTokens is not there once")
    [problem] = refusals(write(tmp_path, "0,1,1", "1,1,1"))
    assert problem.endswith("once each; TIMESTAMP, ContextTokens and GeneratedTokens are not there once")
    [problem] = refusals(write(tmp_path, f"{HEADER},TIMESTAMP", "0,1,1,0"))
    assert problem.endswith("once each; TIMESTAMP is not there once")


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    assert refusals(tmp_path / "absent.csv") == ["path = FILE: no such file"]
    assert "cannot be read" in refusals(tmp_path)[0]
    (tmp_path / "binary").write_bytes(b"\x1f\x8b\x08\x00\xff\xfe\x00")
    assert refusals(tmp_path / "binary") == ["path = FILE: cannot be unpacked: it is no whole gzip file"]
    (tmp_path / "binary").write_bytes(b"\x28\xb5\x2f\xfd\xff\xfe\x00")
    assert refusals(tmp_path / "binary") == [
        "path = FILE: is not text in UTF-8 (of packed files, only gzip's are unpacked)"
    ]
    [problem] = refusals(write(tmp_path, HEADER, '0,1,"' + "1,1\r\n" * 100_000))
    assert problem.startswith("path = FILE: is not a CSV file: field larger than field limit")
