"""Runs are a series where they differ in their rate alone; knees and lines are of one series each."""

from __future__ import annotations

from dataclasses import replace

import pytest

from servesim.report.validation.rates import rates
from servesim.screen.replays import knee_line, notes, short_names
from servesim.validate.compare import Comparison
from servesim.validate.series import knees, series
from tests.validate.runs import small


def at(rate: float, name: str = "", **labels: str) -> Comparison:
    """Return a run whose TTFT grows with its rate, ten per cent slower when simulated."""
    run = small()
    source = name or " ".join(["t.csv", *(f"{key}={value}" for key, value in labels.items())])
    measured = replace(run, source=source, labels=labels, sent_s=run.sent_s / rate, ttft_s=run.ttft_s * rate)
    return Comparison(measured, replace(measured, ttft_s=1.1 * measured.ttft_s))


TWO = [at(rate, scenario=name, qps=f"{rate:g}") for name in ("chat", "code") for rate in (1.0, 2.0, 4.0)]


def test_runs_are_grouped_by_all_columns_but_the_rate() -> None:
    found = series(TWO)
    assert {name: len(runs) for name, runs in found.items()} == {"chat": 3, "code": 3}
    assert len(series([at(2.0, batch="8", qps="2"), at(4.0, batch="8", qps="4")])) == 1


def test_a_column_of_another_name_is_the_rate_when_its_values_are() -> None:
    assert len(series([at(1.0, load="1"), at(2.0, load="2")])) == 1
    assert len(series([at(1.0, half="0"), at(1.0, half="1")])) == 2


def test_files_are_one_series_unless_their_models_differ() -> None:
    runs = [at(1.0, "a.json"), at(2.0, "b.json")]
    assert list(series(runs)) == [""]
    other = replace(runs[1], measured=replace(runs[1].measured, model="another"))
    assert len(series([runs[0], other])) == 2


def test_each_series_has_a_knee_of_its_own_and_one_run_has_none() -> None:
    slow = [replace(each, simulated=each.measured) for each in TWO[3:]]
    alone = at(9.0, scenario="lone", qps="9")
    found = knees([*TWO[:3], *slow, alone], 0.4)
    assert [(each.name, each.measured_rps, each.simulated_rps) for each in found] == [
        ("chat", 2.0, 2.0),
        ("code", 2.0, 2.0),
    ]
    assert knee_line(found[0]).startswith("chat: p99 TTFT passes 0.4 s")


def test_a_line_is_of_one_series() -> None:
    chart = next(rates(TWO, []))
    lines = [trace for trace in chart.figure.data if trace.mode == "lines+markers"]
    assert [(line.name, list(line.x)) for line in lines[::2]] == [
        ("chat", pytest.approx([1, 2, 4])),
        ("code", pytest.approx([1, 2, 4])),
    ]
    assert [line.showlegend for line in lines] == [True, False, True, False]


def test_figures_that_cannot_be_compared_are_in_no_knee() -> None:
    stated = {"ttft": {"mean": 0.2, "p99": 0.5}}
    unknown = [replace(each, measured=replace(each.measured, stated=stated)) for each in TWO[:3]]
    assert knees(unknown, 0.1) == []


def test_names_side_by_side_are_what_differs() -> None:
    assert short_names(TWO)[:2] == ["chat qps=1", "chat qps=2"]
    assert short_names(TWO[:2]) == ["qps=1", "qps=2"]


def test_notes_that_differ_in_figures_alone_are_told_twice_and_counted() -> None:
    many = [
        replace(
            each, measured=replace(each.measured, e2e_s=each.measured.ttft_s + 1, notes=(f"{n} odd rows",))
        )
        for n, each in enumerate(TWO)
    ]
    assert list(notes(many)) == [
        "chat qps=1: 0 odd rows",
        "chat qps=2: 1 odd rows",
        "... and likewise in 4 further runs, with other figures",
    ]
