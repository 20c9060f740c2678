"""A page holds all it needs, shows what it was given, and is the same whenever it is made."""

from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import pytest

from servesim.report.content import Chart, Choice, Markup, Section, Table
from servesim.report.page import Page
from servesim.report.theme import INKS, blank
from tests.browser import Open, numbers

NASTY = '</script><script>document.title="broken"</script> & "quoted" <b>bold</b>'


def page(charts: int = 2, text: str = "words") -> Page:
    def figure(number: int) -> go.Figure:
        made = blank(x="Time (s)", y=f"Figure {number}")
        made.add_scatter(x=np.arange(4.0), y=np.array([1.0, np.nan, 3.0, number]), name="one")
        return made.add_scatter(x=[0, 1], y=[2, 3], name=text)

    drawn = [Chart(f"Chart {number}", figure(number), text, wide=number == 0) for number in range(charts)]
    table = Table("A table", ["name", "figure"], [[text, "1,234"], ["b", "5"]], text)
    return Page(f"Title {text}", [text], [Section("First", drawn, text), Section("Second", [table])], [text])


def test_the_same_content_gives_the_same_bytes() -> None:
    assert page().html() == page().html()


def test_it_loads_nothing(tmp_path: Path) -> None:
    html = page().html()
    assert "<script src" not in html
    assert html.count("<link") == html.count('<link rel="icon" href="data:,">') == 1


def test_text_is_escaped() -> None:
    html = page(text=NASTY).html()
    assert NASTY not in html
    assert html.count("<script") == page().html().count("<script")


def test_numbers_of_charts_are_their_ids() -> None:
    html = page(charts=3).html()
    assert [f'id="chart-{number}"' in html for number in range(5)] == [False, True, True, True, False]


@pytest.mark.parametrize("mode", INKS)
def test_a_browser_draws_it(mode: str, tmp_path: Path, open_page: Open) -> None:
    path = tmp_path / "a page.html"
    page(text=NASTY).write(path)
    opened = open_page(path, mode)
    opened.check()
    assert opened.page.title() == f"Title {NASTY}"
    first, second = opened.traces()
    np.testing.assert_array_equal(numbers(first[0]["y"]), [1, np.nan, 3, 0])
    np.testing.assert_array_equal(numbers(second[0]["x"]), [0, 1, 2, 3])
    assert background(opened.page) == INKS[mode].card  # type: ignore[index]


def test_the_button_changes_the_mode_of_page_and_drawings(tmp_path: Path, open_page: Open) -> None:
    path = tmp_path / "page.html"
    page().write(path)
    opened = open_page(path, "light")
    opened.page.click("#mode")
    opened.page.wait_for_function("document.querySelector('#chart-2').dataset.mode === 'dark'")
    assert background(opened.page) == INKS["dark"].card
    assert opened.page.evaluate("getComputedStyle(document.body).color") == "rgb(230, 233, 237)"
    opened.page.click("#mode")
    opened.page.wait_for_function("document.querySelector('#chart-2').dataset.mode === 'light'")
    assert background(opened.page) == INKS["light"].card
    opened.check()


def background(page: object) -> str:
    return str(page.evaluate("document.querySelector('#chart-1')._fullLayout.paper_bgcolor"))  # type: ignore[attr-defined]


def test_of_a_choice_one_chart_is_seen_and_a_button_shows_another(tmp_path: Path, open_page: Open) -> None:
    path = tmp_path / "page.html"
    first, second = (Chart(name, blank(x="Time (s)", y=name)) for name in ("<one>", "two"))
    Page("Choice", [], [Section("Only", [Choice("Card", [first, second])])]).write(path)
    opened = open_page(path)
    seen = "Array.from(document.querySelectorAll('.chart'), (each) => getComputedStyle(each).visibility)"
    assert opened.page.evaluate(seen) == ["visible", "hidden"]
    opened.page.click("text=two")
    assert opened.page.evaluate(seen) == ["hidden", "visible"]
    pressed = "Array.from(document.querySelectorAll('.buttons button'), (each) => each.ariaPressed)"
    assert opened.page.evaluate(pressed) == ["false", "true"]
    assert opened.page.inner_text(".buttons button") == "<one>"
    opened.check()


def test_texts_of_points_are_kept_once_and_shown_in_every_chart(tmp_path: Path, open_page: Open) -> None:
    path = tmp_path / "page.html"
    figures = [blank(x="Time (s)", y="y").add_scatter(x=[1, 2], y=[3, 4], text=["long text", NASTY])] * 3
    charts = [Chart(str(number), figure) for number, figure in enumerate(figures)]
    Page("Texts", [], [Section("Only", charts)]).write(path)
    assert path.read_text().count("long text") == 1
    opened = open_page(path)
    for number in (1, 2, 3):
        shown = opened.page.evaluate(f"document.querySelector('#chart-{number}').data[0].text")
        assert shown == ["long text", NASTY]
    opened.check()


def test_a_folded_table_opens_and_cells_of_markup_are_put_in_as_they_are(
    tmp_path: Path, open_page: Open
) -> None:
    path = tmp_path / "page.html"
    table = Table("Folded", ["word", "cell"], [[NASTY, Markup("<em>x</em>")]], folded=True)
    Page("Tables", [], [Section("Only", [table])]).write(path)
    opened = open_page(path)
    assert not opened.page.is_visible("td em")
    opened.page.click("summary")
    assert opened.page.is_visible("td em")
    assert opened.page.inner_text("td.word") == NASTY
    opened.check()


def test_a_page_has_style_script_and_data_of_its_own(tmp_path: Path, open_page: Open) -> None:
    path = tmp_path / "page.html"
    script = """document.addEventListener("drawn", ({ detail }) => {
      const data = JSON.parse(document.getElementById("own").textContent);
      document.title += ` ${detail.id} ${data.word}`;
    });"""
    chart = Chart("One", blank(x="Time (s)", y="y"))
    own = {"style": "h1 { color: rgb(1, 2, 3); }", "script": script, "data": {"own": {"word": "</script>"}}}
    Page("Own", [], [Section("Only", [chart])], **own).write(path)
    opened = open_page(path)
    assert opened.page.title() == "Own chart-1 </script>"
    assert opened.page.evaluate("getComputedStyle(document.querySelector('h1')).color") == "rgb(1, 2, 3)"
    opened.check()
