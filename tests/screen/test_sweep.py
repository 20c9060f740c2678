"""What is printed of a sweep."""

import io
import math

import pytest
from rich.console import Console

from servesim.screen.sweep import MOST_ROWS, Column, Rows, counts, error_lines, print_sweep


def printed(rows: int, width: int = 100) -> list[str]:
    out = Console(file=io.StringIO(), width=width)
    labels = {"gpu": ["l40s"] * rows, "x": [2.0] * rows, "y": [True] * rows}
    figures = [(1234.5, 1200.0, 1269.0), (0.5, math.nan, math.nan), (math.nan,) * 3]
    column = Column("A", [figures[row % 3] for row in range(rows)])
    print_sweep(Rows(labels, [column]), ["note"], Rows({}, []), ["end"], out)
    return out.file.getvalue().splitlines()  # type: ignore[attr-defined, no-any-return]


def test_each_row_has_its_settings_and_figures_with_half_their_intervals() -> None:
    lines = printed(3)
    assert [line.split() for line in lines[:4]] == [
        ["gpu", "x", "y", "A"],
        ["l40s", "2", "true", "1,234", "±34.5"],
        ["l40s", "2", "true", "0.5"],
        ["l40s", "2", "true", "-"],
    ]
    assert lines[-4:] == ["", "note", "", "end"]


def test_names_of_figures_are_told_in_parts_and_differences_of_0_are_counted() -> None:
    out = Console(file=io.StringIO(), width=100)
    names = ("cost.usd_per_million_output_tokens", "accounting.timed_out")
    none, some = (0.0, 0.0, 0.0), (2.0, 1.5, 2.5)
    changes = Rows(
        {"less a": ["b", "c", "d"]},
        [Column(names[0], [none] * 3), Column(names[1], [none, some, none])],
        True,
    )
    print_sweep(Rows({}, []), [], changes, [], out)
    lines = out.file.getvalue().split("\n")  # type: ignore[attr-defined]
    heading = [line.split() for line in lines if line and not line.startswith("No")][:-1]
    assert "".join(row[-1] for row in heading[-2:]) == names[1]
    assert "".join(row[-2] if len(row) > 1 else row[0] for row in heading) == names[0]
    assert max(len(line) for line in lines) < 50
    assert lines[-4].split() == ["c", "0", "+2", "±0.5"]
    assert lines[-3] == "No difference at all in 2 rows more"


def test_what_no_screen_holds_is_counted() -> None:
    lines = printed(MOST_ROWS + 7)
    assert lines[MOST_ROWS + 1] == "... and 7 more"
    assert len(lines) == MOST_ROWS + 6
    assert printed(0)[0].split() == ["gpu", "x", "y", "A"]


@pytest.mark.parametrize(
    ("status", "known", "words"),
    [
        (["clean"], 0, "1 point: 1 clean"),
        (["clean"] * 1200, 1200, "1,200 points: 1,200 clean; all known from before"),
        (
            ["failed", "clean", "not_clean"],
            1,
            "3 points: 1 clean, 1 not clean, 1 failed; 1 known from before",
        ),
    ],
)
def test_points_are_counted_by_what_became_of_them(status: list[str], known: int, words: str) -> None:
    assert counts(status, known) == words


def test_errors_are_told_once_each_with_a_point_that_has_them() -> None:
    lines = list(error_lines({"one\ntwo": ["servesim a", "servesim b"], "x": ["servesim c"]}))
    assert lines == ["failed: servesim a and 1 more", "  one", "  two", "failed: servesim c", "  x"]
    many = list(error_lines({str(number): ["p"] for number in range(9)}))
    assert len(many) == 7
    assert many[-1].startswith("... and 6 further errors")
