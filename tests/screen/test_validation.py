"""Tables of a validation are whole at 80 columns: fewer of them, never cut numbers."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from servesim import load
from servesim.screen.errors import share, signed_percent, verdict_words
from servesim.screen.points import print_points
from servesim.screen.validation import print_validation
from servesim.sweeps.point import Outcome
from servesim.validate.closed_loop import Simulated
from servesim.validate.compare import Comparison
from servesim.validate.measured import Measured
from servesim.validate.points import Point, Points
from servesim.validate.tolerance import Verdict
from tests.validate.runs import small

SCENARIO = load("model=llama3.1-8b", "calibration=roofline")
SAID = SCENARIO.as_dict()


def far_off(run: Measured) -> Comparison:
    return Comparison(run, replace(run, ttft_s=612.3 * run.ttft_s, e2e_s=run.e2e_s + 612.3 * run.ttft_s))


def screen(comparisons: list[Comparison], width: int) -> str:
    out = io.StringIO()
    print_validation(SAID, comparisons, [], [], "x/: y", Console(file=out, width=width, highlight=False))
    return out.getvalue()


@pytest.mark.parametrize("width", [80, 100, 140])
@pytest.mark.parametrize("count", [1, 11])
def test_nothing_is_cut_at_any_width(width: int, count: int) -> None:
    run = replace(small(400), itl_s=small(400).ttft_s)
    labels = [{"scenario": "a_rather_long_name", "qps": f"{n}.25"} for n in range(count)]
    printed = screen(
        [far_off(replace(run, source=f"r.csv {n}", labels=labels[n])) for n in range(count)], width
    )
    assert "\u2026" not in printed
    assert max(map(len, printed.splitlines())) <= width
    assert "+61,130%" in printed


def test_a_wider_screen_has_no_fewer_columns() -> None:
    runs = [far_off(replace(small(), source=f"run {n}", labels={"qps": f"{n}"})) for n in range(3)]
    words = [len(screen(runs, width).split()) for width in (60, 80, 100, 140)]
    assert words == sorted(words)


def test_large_errors_are_whole_per_cent_with_their_thousands_marked() -> None:
    assert [signed_percent(each) for each in (0.04, -0.5, 9.9, 190.33)] == [
        "+4.0%",
        "-50.0%",
        "+990.0%",
        "+19,033%",
    ]
    assert share(549.192) == "54,919%"


def test_distances_are_told_as_they_are_given() -> None:
    assert verdict_words(Verdict("run", "ttft.ks", 0.1, 0.24)) == ("0.240", "0.1")
    assert verdict_words(Verdict("run", "ttft.mean", 0.1, -0.24)) == ("24.0%", "10.0%")


def points_screen(count: int) -> str:
    found = [Point(2 + n, 1 + n, 1000, 100, None, {("ttft", "mean"): 0.1}) for n in range(count)]
    figures = {"latency.ttft_s.mean": 0.12, "accounting.preemptions": 3}
    simulated = Simulated(
        Points("p.csv", found, ()), [Outcome("clean", None, dict(figures)) for _ in found], SCENARIO
    )
    out = io.StringIO()
    print_points(simulated, SAID, [], "x/: y", Console(file=out, width=80, highlight=False))
    return out.getvalue()


def test_few_points_are_told_one_by_one_and_many_by_their_users() -> None:
    few, many = points_screen(3), points_screen(13)
    assert [line.split()[-4:] for line in few.splitlines() if "TTFT mean (ms)" in line] == [
        [str(users), "100", "120", "+20.0%"] for users in (1, 2, 3)
    ]
    assert "1 user " in many
    assert "2 users" in many
    assert "(ms)" not in many


def test_what_concerns_points_is_noted_with_how_many_they_are() -> None:
    assert "3 points with preemptions" in points_screen(3)
