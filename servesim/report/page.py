"""One HTML page with everything in it: it opens from disk, without a network, in light and in dark.

The same content gives the same bytes: no dates, and the ids of the drawings are their numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import count
from pathlib import Path
from typing import get_args

from plotly.offline import get_plotlyjs

from servesim.files import in_one_go
from servesim.report.content import Section
from servesim.report.markup import charts, data_element, drawing_id, drawn, part_lines
from servesim.report.theme import FONT, INKS, Mode, template


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
        shown = [chart for section in self.sections for part in section.parts for chart in charts(part)]
        texts: dict[str, int] = {}
        drawings = [drawn(chart.figure, texts) for chart in shown]
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
                data_element("templates", {mode: template(mode).to_plotly_json() for mode in get_args(Mode)}),
                *(
                    data_element(f"{drawing_id(number)}-data", data)
                    for number, data in enumerate(drawings, start=1)
                ),
                data_element("texts", list(texts)),
                *(data_element(name, value) for name, value in self.data.items()),
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
                yield from part_lines(part, numbers)
            yield "</div>"
            yield "</section>"
        yield "</main>"
        if self.notes:
            yield "<footer>"
            yield from (f"<p>{escape(note)}</p>" for note in self.notes)
            yield "</footer>"


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
