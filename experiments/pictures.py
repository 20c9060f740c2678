"""Figures as SVG files: drawn by Plotly in a headless Chromium, as on the pages.

Plotly draws in a browser only. The extra `test` has playwright, which drives Debian's package chromium; where
either is absent there are no pictures, and all else of a study is made without them.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

_FLAGS = ("--headless", "--no-sandbox", "--disable-gpu")
_SVG = """([figure, size]) =>
  Plotly.toImage(JSON.parse(figure), {format: "svg", imageDataOnly: true, ...size})"""

_NAMES = re.compile(
    "(?<=trace)[0-9a-f]{6}|(?<=clip)[0-9a-f]{6}|(?<=defs-)[0-9a-f]{6}"
    "|(?<=legend)[0-9a-f]{6}(?![0-9a-f])|(?<=legend2)[0-9a-f]{6}(?![0-9a-f])"
)

#: Writes a figure of a width and a height in pixels to a file.
Draw = Callable[[go.Figure, Path, int, int], None]


@contextmanager
def drawing() -> Iterator[Draw | None]:
    """Yield the function that writes figures; None where no browser can be had."""
    chromium = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        chromium = None
    if chromium is None:
        yield None
        return
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=list(_FLAGS))

        def draw(figure: go.Figure, path: Path, width: int, height: int) -> None:
            page = browser.new_page()  # a page that has drawn before writes attributes in another order
            page.add_script_tag(content=get_plotlyjs())
            size = {"width": width, "height": height}
            path.write_text(steady(page.evaluate(_SVG, [figure.to_json(), size])), encoding="utf-8")
            page.close()

        yield draw
        browser.close()


def steady(svg: str) -> str:
    """Return a drawing with its names counted: Plotly draws them by lot."""
    places = {name: f"{place:06d}" for place, name in enumerate(dict.fromkeys(_NAMES.findall(svg)))}
    return _NAMES.sub(lambda name: places[name[0]], svg) + "\n"
