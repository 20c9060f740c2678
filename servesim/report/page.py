"""One HTML page with everything in it: it opens from disk, without a network, in light and in dark.

The same content gives the same bytes: no dates, and the ids of the drawings are their numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import count
from pathlib import Path
from typing import get_args

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs
from plotly.utils import PlotlyJSONEncoder

from servesim.files import in_one_go
from servesim.report.theme import FONT, INKS, Mode, template


@dataclass(frozen=True)
class Chart:
    """A figure with what it is called, and a caption that defines what it shows.

    ``wide`` ones take the whole width of the page, the others half of it.
    """

    title: str
    figure: go.Figure
    caption: str = ""
    wide: bool = False


@dataclass(frozen=True)
class Choice:
    """A card with several charts of which one is seen, and a button for each, named by its title."""

    title: str
    charts: Sequence[Chart]
    wide: bool = False


@dataclass(frozen=True)
class Markup:
    """HTML that is put into the page as it is: whoever makes it escapes what it quotes."""

    html: str


@dataclass(frozen=True)
class Table:
    """Rows of cells under headings, if any; the first ``words`` columns are words, the others figures.

    A ``folded`` one shows its title until it is asked for.
    """

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str | Markup]]
    caption: str = ""
    words: int = 1
    folded: bool = False


Part = Chart | Choice | Table | Markup


@dataclass(frozen=True)
class Section:
    """A heading, some sentences, and what stands below them."""

    title: str
    parts: Sequence[Part]
    lead: str = ""


@dataclass(frozen=True)
class Page:
    """A title, paragraphs below it, sections, and notes at the end.

    ``style`` and ``script`` are added to those of every page. For each drawing that is done, the script gets
    the event ``drawn`` at the document, and it finds ``data`` as JSON in elements of these ids.
    """

    title: str
    lead: Sequence[str]
    sections: Sequence[Section]
    notes: Sequence[str] = field(default=())
    style: str = ""
    script: str = ""
    data: Mapping[str, object] = field(default_factory=dict)

    def html(self) -> str:
        """Return the page."""
        charts = [chart for section in self.sections for part in section.parts for chart in _charts(part)]
        texts: dict[str, int] = {}
        drawn = [_drawn(chart.figure, texts) for chart in charts]
        return "\n".join(
            [
                "<!doctype html>",
                '<html lang="en">',
                "<head>",
                '<meta charset="utf-8">',
                '<meta name="viewport" content="width=device-width, initial-scale=1">',
                '<meta name="color-scheme" content="light dark">',
                '<link rel="icon" href="data:,">',
                f"<title>{escape(self.title)}</title>",
                f"<style>\n{style_sheet()}{self.style}</style>",
                "</head>",
                "<body>",
                *self._body(),
                _data("templates", {mode: template(mode).to_plotly_json() for mode in get_args(Mode)}),
                *(_data(f"{_id(number)}-data", data) for number, data in enumerate(drawn, start=1)),
                _data("texts", list(texts)),
                *(_data(name, value) for name, value in self.data.items()),
                f"<script>{get_plotlyjs()}</script>",
                *([f"<script>\n{self.script}</script>"] if self.script else []),
                f"<script>\n{_beside('page.js')}</script>",
                "</body>",
                "</html>",
                "",
            ]
        )

    def write(self, path: Path) -> None:
        """Write the page to a file, in one go."""
        html = self.html()
        with in_one_go(path) as beside:
            beside.write_text(html, encoding="utf-8", newline="\n")

    def _body(self) -> Iterator[str]:
        yield "<header>"
        yield '<button id="mode" type="button">Light or dark</button>'
        yield f"<h1>{escape(self.title)}</h1>"
        yield from (f"<p>{escape(text)}</p>" for text in self.lead)
        if len(self.sections) > 1:
            links = (f'<a href="#{_anchor(each.title)}">{escape(each.title)}</a>' for each in self.sections)
            yield f"<nav>{''.join(links)}</nav>"
        yield "</header>"
        yield "<main>"
        numbers = count(1)
        for section in self.sections:
            yield f'<section id="{_anchor(section.title)}">'
            yield f"<h2>{escape(section.title)}</h2>"
            if section.lead:
                yield f"<p>{escape(section.lead)}</p>"
            yield '<div class="parts">'
            for part in section.parts:
                yield from _part(part, numbers)
            yield "</div>"
            yield "</section>"
        yield "</main>"
        if self.notes:
            yield "<footer>"
            yield from (f"<p>{escape(note)}</p>" for note in self.notes)
            yield "</footer>"


def _id(number: int) -> str:
    return f"chart-{number}"


def _charts(part: Part) -> Sequence[Chart]:
    return [part] if isinstance(part, Chart) else part.charts if isinstance(part, Choice) else []


def _part(part: Part, numbers: Iterator[int]) -> Iterator[str]:
    """Yield a part; every chart takes the next number."""
    if isinstance(part, Markup):
        yield part.html
    elif isinstance(part, Table):
        yield from _table(part)
    else:
        yield f'<figure class="{"wide" if part.wide else "half"}">'
        yield f"<h3>{escape(part.title)}</h3>"
        if isinstance(part, Chart):
            yield from _chart(part, next(numbers))
        else:
            yield from _choice(part, numbers)
        yield "</figure>"


def _choice(choice: Choice, numbers: Iterator[int]) -> Iterator[str]:
    """Yield buttons, and the charts on top of each other, so that choosing moves nothing."""
    yield '<div class="buttons">'
    for chart in choice.charts:
        pressed = str(chart is choice.charts[0]).lower()
        yield f'<button type="button" aria-pressed="{pressed}">{escape(chart.title)}</button>'
    yield "</div>"
    yield '<div class="choice">'
    for chart in choice.charts:
        yield "<div>" if chart is choice.charts[0] else '<div class="unseen">'
        yield from _chart(chart, next(numbers))
        yield "</div>"
    yield "</div>"


def _chart(chart: Chart, number: int) -> Iterator[str]:
    height = chart.figure.layout.height
    label = escape(chart.title, quote=True)
    size = f'style="height:{height}px"'
    yield f'<div class="chart" id="{_id(number)}" role="img" aria-label="{label}" {size}></div>'
    if chart.caption:
        yield f"<figcaption>{escape(chart.caption)}</figcaption>"


def _table(table: Table) -> Iterator[str]:
    yield '<figure class="wide">'
    if table.folded:
        yield f"<details><summary>{escape(table.title)}</summary>"
    else:
        yield f"<h3>{escape(table.title)}</h3>"
    yield '<div class="scroll"><table>'
    if any(table.headings):
        yield f"<thead><tr>{_cells('th', table.headings, table.words)}</tr></thead>"
    yield "<tbody>"
    yield from (f"<tr>{_cells('td', row, table.words)}</tr>" for row in table.rows)
    yield "</tbody>"
    yield "</table></div>"
    if table.caption:
        yield f"<figcaption>{escape(table.caption)}</figcaption>"
    if table.folded:
        yield "</details>"
    yield "</figure>"


def _cells(tag: str, cells: Sequence[str | Markup], words: int) -> str:
    kinds = [' class="word"' if column < words else "" for column in range(len(cells))]
    htmls = (cell.html if isinstance(cell, Markup) else escape(cell) for cell in cells)
    return "".join(f"<{tag}{kind}>{html}</{tag}>" for kind, html in zip(kinds, htmls, strict=True))


def _drawn(figure: go.Figure, texts: dict[str, int]) -> dict[str, object]:
    """Return a figure without its template, which the page sets by its mode.

    What its points say is put into ``texts``, as several charts show the same points; each trace keeps the
    numbers of its texts.
    """
    said = figure.to_dict()
    said["layout"].pop("template", None)
    for trace in said["data"]:
        if isinstance(trace.get("text"), (list, tuple)):
            trace["said"] = [texts.setdefault(str(text), len(texts)) for text in trace.pop("text")]
    return {"data": said["data"], "layout": said["layout"]}


def _data(name: str, value: object) -> str:
    """Return data for the script of the page; as ``<`` is escaped, no text in it can end the element."""
    text = json.dumps(value, cls=PlotlyJSONEncoder, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{text}</script>'


def _anchor(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def style_sheet() -> str:
    """Return the style sheet, with the colours of the theme as its variables."""
    sets = {mode: "".join(f"--{name}:{hue};" for name, hue in INKS[mode]._asdict().items()) for mode in INKS}
    pages = {"light": "--page:#f4f5f7;", "dark": "--page:#0e1114;"}
    light, dark = (f"color-scheme:{mode};{sets[mode]}{pages[mode]}" for mode in ("light", "dark"))
    return (
        f":root{{{light}--sans:{FONT};}}\n"
        f"@media (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"
        f':root[data-mode="light"]{{{light}}}\n'
        f':root[data-mode="dark"]{{{dark}}}\n'
    ) + _beside("page.css")


def _beside(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
