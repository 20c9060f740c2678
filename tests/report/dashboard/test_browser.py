"""The dashboard in a real browser: what a user moves, and what is redrawn."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from servesim import load, run, sweep
from servesim.report.dashboard.loaded import load_folder
from servesim.report.dashboard.whatif import WhatIfs
from servesim.screen.figures import money, number
from tests.browser import LAPTOP, numbers

pytest.importorskip("dash", reason="needs dash, of the extra dashboard")

from werkzeug.serving import make_server

from servesim.report.dashboard.app import create_app

#: What most tests start with: quick to simulate.
QUICK = "?model=llama3.1-8b&requests=60"
RATES = "workload.arrivals.rate_rps=2,4"

#: All figures of a card, as the browser holds them.
_DRAWN = """(title) => Array.from(document.querySelectorAll(".card.chart"))
  .filter((card) => card.querySelector("h3").textContent.startsWith(title))
  .flatMap((card) => card.querySelector(".js-plotly-plot")._fullData)
  .map(({name, mode, x, y}) => ({name, mode, x: Array.from(x ?? []), y: Array.from(y ?? [])}))"""

#: Nothing is on its way, and every chart is drawn.
_STILL = """() => !document.querySelector("[data-dash-is-loading=true]") && document.querySelector("#command")
  && Array.from(document.querySelectorAll(".card.chart"))
    .every((card) => card.querySelector(".js-plotly-plot")?._fullData)"""


class Page:
    """A page of the dashboard, and what it complained of or asked other hosts for."""

    def __init__(self, page: Any, address: str) -> None:
        self.page, self.address = page, address
        self.complaints: list[str] = []
        page.on(
            "console",
            lambda each: self.complaints.append(each.text) if each.type in ("error", "warning") else None,
        )
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", self._request)

    def _request(self, request: Any) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.complaints.append(f"asked for {request.url}")

    def open(self, query: str = "", ready: str = "#tiles") -> Page:
        self.page.goto(self.address + query)
        self.page.wait_for_selector(ready, timeout=60_000)
        self.still()
        return self

    def until(self, command: str) -> None:
        """Wait until this command is shown, and all that follows from it."""
        self.page.wait_for_function(
            "(said) => document.querySelector('#command').textContent === said", arg=command
        )
        self.still()

    def still(self) -> None:
        self.page.wait_for_function(_STILL)

    def type(self, name: str, value: object) -> None:
        self.page.fill(f"#{name}", str(value))
        self.page.press(f"#{name}", "Enter")

    def choose(self, name: str, option: str) -> None:
        """Choose an option of a menu."""
        self.page.click(f"#{name}")
        self.page.get_by_role("option", name=option).click()

    def value(self, name: str) -> str:
        """Return what a number or a menu shows."""
        field = self.page.locator(f"#{name}")
        return str(
            field.input_value() if field.evaluate("it => it.tagName") == "INPUT" else field.inner_text()
        )

    def tile(self, title: str) -> list[str]:
        """Return the lines of a figure below its title."""
        tile = self.page.locator(".tile", has=self.page.get_by_text(title, exact=True))
        return [line for line in tile.inner_text().splitlines()[1:] if line]

    def drawn(self, title: str) -> list[dict[str, Any]]:
        return list(self.page.evaluate(_DRAWN, title))

    def check(self) -> None:
        """Assert what always holds: nothing complained, and nothing is wider than the screen."""
        self.still()
        assert self.complaints == []
        width, inside = self.page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
        assert width <= inside


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("sweeps") / "small"
    sweep(["model=llama3.1-8b", "workload.requests=60"], [RATES], folder=made, n_jobs=1)
    return made


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    app = create_app(load_folder(folder.parent), WhatIfs())
    server = make_server("127.0.0.1", 0, app.server, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def context(browser: Any) -> Iterator[Any]:
    """One context for all pages, so that the scripts are fetched once."""
    made = browser.new_context(viewport=LAPTOP, color_scheme="light")
    made.set_default_timeout(30_000)
    made.grant_permissions(["clipboard-read", "clipboard-write"])
    yield made
    made.close()


@pytest.fixture
def opened(context: Any, address: str) -> Iterator[Callable[..., Page]]:
    page = Page(context.new_page(), address)
    yield page.open
    page.page.close()


@cache
def summary(*overrides: str) -> dict[str, Any]:
    return run(load(*overrides)).summary


def test_the_default_what_if_appears(opened: Callable[..., Page]) -> None:
    page = opened()
    page.page.wait_for_selector("#curves .js-plotly-plot", timeout=60_000)
    expected = summary()
    assert page.tile("TTFT p99")[0] == number(expected["latency"]["ttft_s"]["p99"])
    assert page.tile("Cost")[0] == f"${money(expected['cost']['usd_per_million_output_tokens'])}"
    (curve,) = [trace for trace in page.drawn("TPOT") if trace["name"] == "A"]
    assert max(curve["y"]) == 1
    assert max(curve["x"]) == pytest.approx(1e3 * expected["latency"]["tpot_s"]["max"])
    (points,) = [trace for trace in page.drawn("Goodput against rate") if trace["name"] == "all points"]
    assert 4.0 in points["x"]
    assert numbers(points["y"]).max() > 2 * expected["goodput"]["requests_per_s"]
    assert page.page.locator("#command").inner_text() == "servesim"
    page.check()


def test_moving_the_rate_redraws(opened: Callable[..., Page]) -> None:
    page = opened(QUICK)
    before = page.tile("Output")
    page.type("rate", 9)
    page.until("servesim model=llama3.1-8b workload.arrivals.rate_rps=9 workload.requests=60")
    expected = summary("model=llama3.1-8b", "workload.arrivals.rate_rps=9", "workload.requests=60")
    assert (
        page.tile("Output")[0] == number(expected["throughput"]["output_tokens_per_s_per_gpu"]) != before[0]
    )
    assert "rate=9" in page.page.url
    page.page.locator("#rate-control [role=slider]").press("ArrowRight")
    page.page.wait_for_function("() => document.querySelector('#rate').value > 9")
    page.until(
        f"servesim model=llama3.1-8b workload.arrivals.rate_rps={page.value('rate')} workload.requests=60"
    )
    page.page.go_back()
    page.until("servesim model=llama3.1-8b workload.arrivals.rate_rps=9 workload.requests=60")
    assert page.value("rate") == "9"
    page.check()


def test_a_model_that_does_not_fit_shows_the_memory_sheet(opened: Callable[..., Page]) -> None:
    page = opened("?model=llama3.1-405b", ready=".problems")
    said = page.page.locator(".problems").inner_text()
    assert "The model does not fit on its GPUs" in said
    assert "does not fit on 4 GPU(s) a replica" in said
    assert "GB  weights" in said
    assert page.page.locator(".js-plotly-plot").count() == 0
    page.check()


def test_every_problem_of_a_state_is_listed(opened: Callable[..., Page]) -> None:
    page = opened("?rate=-1&replicas=0", ready=".problems")
    said = page.page.locator(".problems").inner_text()
    assert "2 problems" in said
    assert "cluster.replicas = 0" in said
    assert "workload.arrivals.rate_rps = -1" in said
    page.open("?speed=1&rate=fast", ready=".problems")
    said = page.page.locator(".problems").inner_text()
    assert "speed = '1': there is no such control" in said
    assert "rate = 'fast': must be a number" in said
    page.open("?gpu=bogus&tp=3&lengths=reasoning", ready=".problems")
    assert "gpu = 'bogus': there is no such option" in page.page.locator(".problems").inner_text()
    page.page.wait_for_selector("#gpu-control.wrong")
    assert [page.value(name) for name in ("gpu", "tp", "lengths")] == ["bogus", "3", "reasoning"]
    assert "gpu=bogus cluster.tensor_parallel_size=3" in page.page.locator("#command").inner_text()
    page.check()


def test_what_is_not_seen_blocks_nothing(opened: Callable[..., Page]) -> None:
    page = opened("?price=abc", ready=".problems")
    assert page.page.locator("#command").inner_text() == "servesim"
    page.choose("sweep", "small")
    page.page.wait_for_selector("#shown")
    assert page.page.locator(".problems").count() == 0
    assert page.page.locator("#command").inner_text() == ""
    page.check()


def test_a_gpu_that_is_changed_takes_its_own_price(opened: Callable[..., Page]) -> None:
    page = opened(f"{QUICK}&price=15&compare=1")
    page.page.click("#side label:has-text('B')")
    page.choose("b-gpu", "h200-sxm")
    page.until(
        "servesim model=llama3.1-8b pricing.usd_per_gpu_hour=15 workload.requests=60\n"
        "servesim model=llama3.1-8b gpu=h200-sxm workload.requests=60"
    )
    page.check()


def test_what_cannot_be_read_stays_to_be_corrected(opened: Callable[..., Page]) -> None:
    page = opened(QUICK)
    page.type("ttft", "soon")
    page.page.wait_for_selector(".problems")
    assert "ttft = 'soon': must be a number" in page.page.locator(".problems").inner_text()
    assert page.value("ttft") == "soon"
    page.type("ttft", 0.25)
    page.until("servesim model=llama3.1-8b workload.requests=60 slo.ttft_s=0.25")
    page.page.wait_for_selector("#tiles")
    page.check()


def test_a_url_restores_the_state(opened: Callable[..., Page]) -> None:
    query = f"{QUICK.replace('&', '&gpu=h200-sxm&')}&scheduler=disaggregated&prefill=2&ttft=&compare=1&b-tp=2"
    page = opened(query)
    shown = {
        name: page.value(name)
        for name in ("model", "gpu", "scheduler", "prefill", "requests", "ttft", "b-tp")
    }
    assert shown == {
        "model": "llama3.1-8b",
        "gpu": "h200-sxm",
        "scheduler": "disaggregated",
        "prefill": "2",
        "requests": "60",
        "ttft": "",
        "b-tp": "2",
    }
    assert page.page.is_checked("#compare input")
    assert page.page.is_visible("#prefill")
    assert not page.page.is_visible("#replicas")
    assert len(page.page.locator("#command").inner_text().splitlines()) == 2
    page.check()


def test_a_group_unfolds_and_what_is_chosen_there_is_simulated(opened: Callable[..., Page]) -> None:
    page = opened(f"{QUICK}&order=priority")
    assert page.page.locator("#engine-group .mark").inner_text() == "1 set"
    assert page.page.is_visible("#preempt")
    assert not page.page.is_visible("#speculation")
    page.page.click("#guess-group summary")
    assert not page.page.is_visible("#acceptance")
    page.choose("speculation", "ngram")
    said = ("model=llama3.1-8b", "scheduler/queue_order=priority", "scheduler/speculation=ngram")
    page.until(f"servesim {' '.join(said)} workload.requests=60")
    assert page.page.locator("#guess-group .mark").inner_text() == "1 set"
    assert page.page.locator("#acceptance").get_attribute("placeholder") == "0.4"
    drafts = summary(*said, "workload.requests=60")["speculation"]
    assert page.tile("Tokens per step")[0] == number(drafts["mean_accepted_length"])
    page.type("acceptance", 2)
    page.page.wait_for_selector("#acceptance-control.wrong")
    page.type("acceptance", 0.9)
    page.until(f"servesim {' '.join(said)} scheduler.speculation.acceptance=0.9 workload.requests=60")
    assert float(page.tile("Tokens per step")[0]) > drafts["mean_accepted_length"]
    page.check()


def test_agents_have_users_in_place_of_a_rate_and_tenants_their_latencies(
    opened: Callable[..., Page],
) -> None:
    page = opened("?model=llama3.1-8b&requests=80&workload=agentic&paid=0.4&concurrency=4")
    assert not page.page.is_visible("#rate")
    assert page.value("concurrency") == "4"
    assert page.value("arrivals") == "agents"
    assert page.page.locator("#lengths").inner_text() == "agent_task"
    assert {trace["name"] for trace in page.drawn("TTFT by tenant")} == {"paid", "free"}
    page.page.wait_for_selector("#curves .js-plotly-plot", timeout=60_000)
    page.still()
    (points,) = [each for each in page.drawn("Goodput against users") if each["name"] == "all points"]
    assert points["x"] == [1, 2, 3, 4, 6, 8, 12]
    page.choose("workload", "synthetic")
    page.until(
        "servesim model=llama3.1-8b workload.requests=80 "
        "workload.tenants.paid.share=0.4 workload.tenants.free.share=0.6"
    )
    assert page.page.is_visible("#rate")
    assert not page.page.is_visible("#talk-group")
    page.check()


def test_two_configurations_are_told_apart_and_subtracted(opened: Callable[..., Page]) -> None:
    page = opened(QUICK)
    page.page.click("#compare label")
    page.page.wait_for_selector(".letter.B")
    assert page.page.is_visible("#b-replicas")
    page.type("b-replicas", 1)
    page.until(
        "servesim model=llama3.1-8b workload.requests=60\n"
        "servesim model=llama3.1-8b cluster.replicas=1 workload.requests=60"
    )
    overrides = ("model=llama3.1-8b", "workload.requests=60")
    a, b = (
        each["latency"]["tpot_s"]["p99"]
        for each in (summary(*overrides), summary(*overrides, "cluster.replicas=1"))
    )
    assert b > a
    shown_a, shown_b, difference = page.tile("TPOT p99")[:3]
    assert (shown_a, shown_b) == (f"A{number(a, 1e3)}", f"B{number(b, 1e3)}")
    assert difference == f"+{number(b - a, 1e3)} ({b / a - 1:+.1%})"
    assert {trace["name"] for trace in page.drawn("TPOT")} == {"A", "B"}
    page.check()


def test_one_configuration_may_fit_where_the_other_does_not(opened: Callable[..., Page]) -> None:
    page = opened(f"{QUICK}&compare=1&b-model=llama3.1-405b")
    assert "does not fit" in page.page.locator(".problems").inner_text()
    assert [trace["name"] for trace in page.drawn("E2E")] == ["A"]
    page.check()


def test_the_buttons_copy_the_command_and_make_it_dark(opened: Callable[..., Page]) -> None:
    page = opened(f"{QUICK}&price=2.5")
    page.page.click("#copy")
    page.page.wait_for_function("() => document.querySelector('#copy').textContent === 'Copied'")
    copied = page.page.evaluate("navigator.clipboard.readText()")
    assert copied == "servesim model=llama3.1-8b pricing.usd_per_gpu_hour=2.5 workload.requests=60"
    paper = "() => document.querySelector('.js-plotly-plot')._fullLayout.paper_bgcolor"
    light = page.page.evaluate(paper)
    page.page.click("#toggle")
    page.page.wait_for_function(f"(light) => ({paper})() !== light", arg=light)
    papers = (
        "() => Array.from(document.querySelectorAll('.js-plotly-plot'), (e) => e._fullLayout.paper_bgcolor)"
    )
    assert len(set(page.page.evaluate(papers))) == 1, "all charts change at once"
    page.check()


def test_a_loaded_sweep_is_judged_anew_without_running_it(opened: Callable[..., Page]) -> None:
    page = opened(f"?sweep={quote('small')}", ready="#shown")
    (before,) = [trace for trace in page.drawn("Cost") if trace["mode"] == "markers"]
    (met,) = [trace for trace in page.drawn("SLO") if trace["mode"] == "markers"]
    assert not page.page.is_visible("#model")
    page.type("sweep_price", 8)
    page.page.wait_for_selector(".lead:has-text('at $8.00 per GPU-hour')")
    page.still()
    (after,) = [trace for trace in page.drawn("Cost") if trace["mode"] == "markers"]
    assert numbers(after["y"]) == pytest.approx(8 / load().gpu.usd_per_hour * numbers(before["y"]))
    assert after["x"] == before["x"]
    page.type("tpot", 0.001)
    page.page.wait_for_selector(".lead:has-text('TPOT <= 0.001 s')")
    page.still()
    (missed,) = [trace for trace in page.drawn("SLO") if trace["mode"] == "markers"]
    assert set(missed["y"]) == {0}
    assert min(met["y"]) > 0
    point = page.page.locator(".js-plotly-plot .scatterlayer .point").first.bounding_box()
    page.page.mouse.move(point["x"] + point["width"] / 2, point["y"] + point["height"] / 2)
    page.page.mouse.click(point["x"] + point["width"] / 2, point["y"] + point["height"] / 2)
    page.page.wait_for_function("() => document.querySelector('#picked').textContent.startsWith('servesim ')")
    assert "workload.arrivals.rate_rps=2" in page.page.locator("#picked").inner_text()
    page.page.locator("#shown label").first.click()
    page.page.wait_for_function("() => !document.querySelector('.js-plotly-plot .scatterlayer .point')")
    page.check()
