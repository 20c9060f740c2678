"""Pages of comparisons: in a browser their drawings hold both runs, and nothing covers anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from servesim import load
from servesim.report.content import Chart, Choice
from servesim.report.page import Page
from servesim.report.validation.charts import medians_over_time
from servesim.report.validation.page import runs_page
from servesim.report.validation.points import points_page
from servesim.sweeps.point import Outcome
from servesim.validate.closed_loop import Simulated
from servesim.validate.compare import Comparison
from servesim.validate.points import Point, Points
from servesim.validate.replay import base
from servesim.validate.series import knees
from servesim.validate.tolerance import Verdict
from tests.browser import Open, numbers
from tests.validate.runs import small

SCENARIO = load("model=llama3.1-8b", "calibration=roofline")
SAID = SCENARIO.as_dict()
MODES = pytest.mark.parametrize("mode", ["light", "dark"])


def comparison(rate: float = 1.0, name: str = "run.json", count: int = 60) -> Comparison:
    run = small(count)
    measured = replace(
        run,
        source=name,
        request_rate=rate,
        sent_s=run.sent_s / rate,
        ttft_s=run.ttft_s * rate,
        e2e_s=run.e2e_s + 4 * run.ttft_s,
        itl_s=run.ttft_s / 9,
    )
    return Comparison(measured, replace(measured, ttft_s=1.2 * measured.ttft_s))


def points() -> Simulated:
    figures = {("ttft", "mean"): 0.1, ("tpot", "mean"): 0.02, ("throughput", "output_tokens"): 100.0}
    found = [
        Point(2 + n, users, 1000, 100, tp, {figure: value * users for figure, value in figures.items()})
        for n, (users, tp) in enumerate((users, tp) for users in (1, 8, 64) for tp in (1, 2, 4))
    ]
    outcomes = [
        Outcome(
            "clean",
            None,
            {
                "latency.ttft_s.mean": 0.11 * point.concurrency,
                "latency.tpot_s.mean": 0.019 * point.concurrency,
                "throughput.output_tokens_per_s": 103.0 * point.concurrency,
            },
        )
        for point in found
    ]
    return Simulated(Points("points.csv", found, ("a note",)), outcomes, SCENARIO)


def titles(page: Page) -> list[str]:
    parts = [part for section in page.sections for part in section.parts]
    return [part.title for part in parts if isinstance(part, (Chart, Choice))]


@MODES
def test_the_page_of_a_run_holds_both_distributions(mode: str, tmp_path: Path, open_page: Open) -> None:
    one = comparison()
    verdicts = [Verdict("run.json", "ttft.mean", 0.15, 0.2)]
    path = tmp_path / "index.html"
    runs_page([one], SAID, [], verdicts).write(path)
    opened = open_page(path, mode)
    opened.check()
    assert "MISSED" in opened.page.content()
    measured, simulated = opened.traces()[0]
    np.testing.assert_allclose(numbers(measured["x"]), 1e3 * np.sort(one.measured.ttft_s))
    np.testing.assert_allclose(numbers(simulated["x"]), 1e3 * np.sort(one.simulated.ttft_s))
    assert numbers(measured["y"])[-1] == 1


@MODES
def test_the_page_of_several_runs_has_the_knee_and_every_run(
    mode: str, tmp_path: Path, open_page: Open
) -> None:
    several = [comparison(rate, f"{rate:g}.json") for rate in (1.0, 2.0, 4.0)]
    page = runs_page(several, SAID, knees(several, 1.5), [])
    path = tmp_path / "index.html"
    page.write(path)
    opened = open_page(path, mode)
    opened.check()
    assert titles(page)[0] == "p99 TTFT against the rate"
    tail = opened.traces()[0]
    assert [trace["name"] for trace in tail] == ["measured", "simulated", "limit 1.5 s"]
    assert numbers(tail[0]["x"]).tolist() == [1, 2, 4]
    assert "p99 TTFT passes 1.5 s: measured at 4/s, simulated at 2/s (-50.0%)" in opened.page.content()


@MODES
def test_the_page_of_points_holds_them_all(mode: str, tmp_path: Path, open_page: Open) -> None:
    path = tmp_path / "index.html"
    points_page(points(), SAID, [Verdict("points.csv", "ttft.mape", 0.2, 0.1)]).write(path)
    opened = open_page(path, mode)
    opened.check()
    scatter, errors = opened.traces()[:2]
    assert [trace["name"] for trace in scatter] == ["equal", "1 GPU", "2 GPUs", "4 GPUs"]
    assert numbers(scatter[1]["x"]).tolist() == pytest.approx([100, 800, 6400])
    assert all(numbers(trace["y"]) == pytest.approx(0.1) for trace in errors[1:])


def test_a_summary_has_a_page_without_drawings() -> None:
    run = small()
    unknown = np.full(run.requests, np.nan)
    summary = replace(run, ttft_s=unknown, e2e_s=unknown, stated={"ttft": {"mean": 0.1}})
    page = runs_page([Comparison(summary, run)], SAID, [], [])
    assert titles(page) == []
    assert "TTFT mean (ms)" in page.html()


def test_answers_that_end_before_they_begin_have_a_page_and_are_told() -> None:
    run = small()
    odd = replace(run, e2e_s=run.ttft_s / 2)
    page = runs_page([Comparison(odd, odd), Comparison(odd, run)], SAID, [], [])
    assert "12 requests measured with an E2E below its TTFT: no TPOT of it." in page.notes
    assert page.html()


def test_points_of_one_size_and_failed_ones_have_a_page() -> None:
    several = points()
    lone = [point._replace(tp=None) for point in several.points.points]
    outcomes: Sequence[Any] = [Outcome.failed("does not fit"), *several.outcomes[1:]]
    page = points_page(Simulated(several.points._replace(points=lone), outcomes, SCENARIO), SAID, [])
    assert "line 2 could not be simulated: does not fit." in page.notes
    assert len(titles(page)) == 6


def test_medians_over_time_are_of_equally_many_requests() -> None:
    middles, medians = medians_over_time(np.arange(100.0), np.arange(100.0) ** 2)
    assert len(middles) == 10
    assert middles.tolist() == [4.5 + 10 * n for n in range(10)]
    assert (np.diff(medians) > 0).all()


@MODES
def test_the_page_of_many_runs_draws_lines_against_the_rate_alone(
    mode: str, tmp_path: Path, open_page: Open
) -> None:
    many = [
        replace(each, measured=replace(each.measured, labels={"kind": kind, "qps": f"{rate:g}"}))
        for kind in ("chat", "code")
        for rate in (1.0, 2.0, 4.0)
        for each in [comparison(rate, f"t.csv kind={kind} qps={rate:g}")]
    ]
    page = runs_page(many, SAID, knees(many, 1.5), [])
    path = tmp_path / "index.html"
    page.write(path)
    opened = open_page(path, mode)
    opened.check()
    assert len(titles(page)) == 4
    assert not any(isinstance(part, Choice) for section in page.sections for part in section.parts)
    assert [trace["name"] for trace in opened.traces()[1]] == ["chat", "chat", "code", "code"]
    assert "chat: p99 TTFT passes 1.5 s" in opened.page.content()
    assert "chat qps=1" in opened.page.content()


def test_the_page_says_what_was_assumed_of_the_server() -> None:
    page = runs_page([comparison()], base([]).as_dict(), [], [])
    assert any(text.startswith("Not given, so taken as model=llama3.1-70b") for text in page.lead)
