"""The page of a run: in a browser its drawings hold the run's own rows."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from servesim import load, run
from servesim.report.content import Chart
from servesim.report.run.latency import cdf
from servesim.report.run.load import load_over_time
from servesim.report.run.page import run_page, write_page
from servesim.report.run.saved import Run
from servesim.screen.notes import notes
from tests.browser import Open, numbers
from tests.report.run.runs import KINDS, SMALL, made


def titles(page: object) -> list[str]:
    sections = page.sections  # type: ignore[attr-defined]
    return [part.title for section in sections for part in section.parts if isinstance(part, Chart)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_run_has_a_page_of_bounded_size(kind: str) -> None:
    assert len(run_page(made(kind)).html()) < 8e6


@pytest.mark.parametrize("kind", ["static", "cut", "nothing_served"])
def test_a_browser_draws_it(kind: str, tmp_path: Path, open_page: Open) -> None:
    path = tmp_path / "page.html"
    run_page(made(kind)).write(path)
    open_page(path, "dark" if kind == "static" else "light").check()


def test_a_run_of_several_tenants_shows_what_each_got() -> None:
    given = made("continuous")
    page = run_page(Run(given.summary, given.requests.assign(tenant=range(len(given.requests))), given.steps))
    assert "Tenants and classes" in [section.title for section in page.sections]
    assert "Latency by tenant" in page.html()
    assert "Tenants and classes" not in run_page(given).html()


def test_a_run_that_served_nothing_has_its_figures() -> None:
    page = run_page(made("nothing_served"))
    assert [section.title for section in page.sections] == ["Figures"]
    assert "dropped (prompt too long)" in page.html()


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_says_what_the_screen_says(kind: str) -> None:
    summary = made(kind).summary
    rows = [row for part in run_page(made(kind)).sections[0].parts for row in part.rows]  # type: ignore[union-attr]
    told = {str(row[0]): " ".join(map(str, row[1:])) for row in rows}
    assert "J per output token" in told["energy"]
    assert "W per GPU" in told["energy"]
    assert f"weights {summary['scenario']['model']['weights_dtype']}, KV cache" in told["formats"]
    assert f"{summary['accounting']['preemptions']:,} preemption" in told["requests"]
    assert " s (target " in told["goodput"]
    first = next(iter(summary["memory"].values()))
    assert told["weights"].startswith(f"-{first['weights_bytes'] / 1e9:,.2f}")
    for note in notes(summary, ()):
        assert f"{note[0].upper()}{note[1:]}." in told


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_drawings_hold_the_tables(mode: str, tmp_path: Path, open_page: Open) -> None:
    given = made("disaggregated")
    path = tmp_path / "page.html"
    run_page(given).write(path)
    opened = open_page(path, mode)
    opened.check()
    charts = dict(zip(titles(run_page(given)), opened.traces(), strict=True))
    x, y = cdf(given.requests.ttft_s)
    np.testing.assert_array_equal(numbers(charts["TTFT, distribution"][0]["x"]), 1e3 * x)
    np.testing.assert_array_equal(numbers(charts["TTFT, distribution"][0]["y"]), y)
    sent = given.requests.sort_values("sent_s", kind="stable")
    np.testing.assert_array_equal(numbers(charts["E2E over time"][0]["y"]), sent.e2e_s)
    for pool in given.pools:
        table = load_over_time(given, pool)
        drawn = {trace["name"]: trace for trace in charts[f"Utilisation, {pool.title}"]}
        for name in ("busy", "compute", "bandwidth"):
            np.testing.assert_array_equal(numbers(drawn[name]["y"])[:-1], table[name])
        (batch,) = (trace for trace in charts["Batch size"] if trace["name"] == pool.title)
        np.testing.assert_array_equal(numbers(batch["y"])[:-1], table.sequences)
    bars = charts["E2E, from the fastest half to the slowest 1%"]
    assert sum(numbers(bar["x"])[0] for bar in bars) == pytest.approx(
        given.requests.e2e_s.nsmallest(len(given.requests) // 2).mean()
    )


def test_a_saved_run_and_its_result_give_the_same_bytes(tmp_path: Path) -> None:
    result = run(load(*SMALL))
    result.save(tmp_path)
    write_page(result, tmp_path / "a.html")
    write_page(tmp_path, tmp_path / "b.html")
    write_page(run(load(*SMALL)), tmp_path / "c.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "c.html").read_bytes()


def test_what_a_changed_profile_leaves_out_is_told() -> None:
    given = made("disaggregated")
    changed = [{**each, "hash": "0"} for each in given.summary["scenario"]["calibration"]["profiles"]]
    calibration = {**given.summary["scenario"]["calibration"], "profiles": changed}
    summary = {**given.summary, "scenario": {**given.summary["scenario"], "calibration": calibration}}
    page = run_page(Run(summary, given.requests, given.steps))
    assert not any("consists of" in title for title in titles(page))
    assert any("left out: calibration" in note and "has changed since the run" in note for note in page.notes)


def test_names_of_a_user_s_own_are_text() -> None:
    given = made("continuous")
    scenario = {**given.summary["scenario"]}
    scenario["model"] = {**scenario["model"], "name": "<b>mine</b> & yours"}
    html = run_page(Run({**given.summary, "scenario": scenario}, given.requests, given.steps)).html()
    assert "<title>&lt;b&gt;mine&lt;/b&gt; &amp; yours on 4 x h100-sxm</title>" in html
    assert "<b>mine" not in html


def test_a_large_run_has_a_page_of_the_same_size() -> None:
    given = made("continuous")
    many = pd.concat(
        [given.requests.assign(request_id=given.requests.request_id + 1000 * n) for n in range(60)]
    )
    more = pd.concat([given.steps.assign(start_s=given.steps.start_s + 1e-6 * n) for n in range(60)])
    large = Run(given.summary, many.reset_index(drop=True), more.reset_index(drop=True))
    assert len(run_page(large).html()) < len(run_page(given).html()) + 1e6
