"""The parts of a page as HTML, and the data of its drawings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from html import escape

import plotly.graph_objects as go
from plotly.utils import PlotlyJSONEncoder

from servesim.report.content import Chart, Choice, Markup, Part, Table


def drawing_id(number: int) -> str:
    """Return the id of a drawing, which counts from 1."""
    return f"chart-{number}"


def charts(part: Part) -> Sequence[Chart]:
    """Return the charts of a part, in their order on the page."""
    return [part] if isinstance(part, Chart) else part.charts if isinstance(part, Choice) else []


def part_lines(part: Part, numbers: Iterator[int]) -> Iterator[str]:
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
    yield f'<div class="chart" id="{drawing_id(number)}" role="img" aria-label="{label}" {size}></div>'
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


def drawn(figure: go.Figure, texts: dict[str, int]) -> dict[str, object]:
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


def data_element(name: str, value: object) -> str:
    """Return data for the script of the page; as ``<`` is escaped, no text in it can end the element."""
    text = json.dumps(value, cls=PlotlyJSONEncoder, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{text}</script>'
