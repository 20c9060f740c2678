"""Pages in a real browser: Debian's chromium, driven by playwright, without a network."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

LAPTOP = {"width": 1366, "height": 768}
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

#: The data of every drawing as the browser holds it; arrays of numbers come packed or as they are.
_TRACES = """() => Array.from(document.querySelectorAll(".chart"), (gd) => gd.data.map((trace, index) => {
  const plain = (key) => {
    const known = gd._fullData[index][key] ?? trace[key];
    return known === undefined ? null : Array.from(known, (row) => row?.length && typeof row !== "string"
      ? Array.from(row) : row);
  };
  return {name: trace.name ?? null, type: trace.type, x: plain("x"), y: plain("y"), z: plain("z")};
}))"""


@dataclass
class Opened:
    """A page that a browser has drawn, and what it complained of or asked for meanwhile."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def traces(self) -> list[list[dict[str, Any]]]:
        """Return name, type, x, y and z of every trace, by drawing."""
        traces: list[list[dict[str, Any]]] = self.page.evaluate(_TRACES)
        return traces

    def named(self, name: str) -> list[dict[str, Any]]:
        """Return all traces of a name."""
        return [trace for chart in self.traces() for trace in chart if trace["name"] == name]

    def check(self) -> None:
        """Assert what holds for every page: nothing complained, was fetched, is too wide or covered."""
        assert self.complaints == []
        assert [address for address in self.requests if not address.startswith(("file:", "data:"))] == []
        width, inside = self.page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
        assert width <= inside
        assert self.page.evaluate(_SPILT) == []
        assert self.page.evaluate(_OVERLAPS) == []


#: Drawings that spill over their card.
_SPILT = """() => Array.from(document.querySelectorAll(".chart"))
  .filter((gd) => Math.max(gd.scrollWidth, gd.querySelector("svg").clientWidth) > gd.clientWidth + 1)
  .map((gd) => gd.id)"""

#: Drawings whose legend lies over the plot, and titles of axes over labels of ticks.
_OVERLAPS = """() => {
  const box = (element) => element.getBoundingClientRect();
  const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1
    && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  return Array.from(document.querySelectorAll(".chart")).filter((gd) => {
    const legend = gd.querySelector(".legend"), plots = Array.from(gd.querySelectorAll(".plot"));
    const frames = Array.from(gd.querySelectorAll(".bglayer .bg, .xy .gridlayer")).concat(plots);
    const titles = Array.from(gd.querySelectorAll(".xtitle, .ytitle"));
    const labels = Array.from(gd.querySelectorAll(".xtick text, .ytick text"));
    return (legend && frames.some((each) => box(each).width && meet(box(legend), box(each))))
      || titles.some((title) => labels.some((label) => meet(box(title), box(label))));
  }).map((gd) => gd.id);
}"""

#: Opens a file in a mode, light or dark, and waits until all is drawn.
Open = Callable[..., Opened]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A running chromium; tests are skipped where it, or playwright, is absent."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright, of the extra test")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("needs a chromium (Debian: apt-get install chromium)")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=chromium, args=list(FLAGS))
        yield running
        running.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Open]:
    """Return a function that opens a file at the size of a laptop's screen, for one test."""
    with _opening(browser) as opened:
        yield opened


@pytest.fixture(scope="module")
def open_shared(browser: Any) -> Iterator[Open]:
    """Return such a function for pages that the tests of a module share, and leave as they found them."""
    with _opening(browser) as opened:
        yield opened


@contextmanager
def _opening(browser: Any) -> Iterator[Open]:
    contexts = []

    def opened(path: Path, mode: str = "light") -> Opened:
        context = browser.new_context(viewport=LAPTOP, color_scheme=mode, offline=True)
        contexts.append(context)
        seen = Opened(context.new_page())
        seen.page.on("console", lambda message: _note(seen, message))
        seen.page.on("pageerror", lambda error: seen.complaints.append(str(error)))
        seen.page.on("request", lambda request: seen.requests.append(request.url))
        seen.page.goto(path.resolve().as_uri())
        seen.page.wait_for_selector("body[data-drawn]", timeout=60_000)
        return seen

    yield opened
    for context in contexts:
        context.close()


def _note(seen: Opened, message: Any) -> None:
    if message.type in ("error", "warning"):
        seen.complaints.append(message.text)


def numbers(values: Any) -> np.ndarray:
    """Return values of a trace as numbers; what is missing is NaN."""
    return np.array([np.nan if value is None else value for value in values], dtype=float)
