"""What the dashboard shows of answers: figures with their differences, charts, or the problems instead."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from dash import dcc, html
from rich.console import Console

from servesim.check import Problem
from servesim.report.dashboard.charts import Titled, names, themed
from servesim.report.dashboard.distributions import of_groups, of_letters
from servesim.report.dashboard.state import State
from servesim.report.dashboard.tiles import share_of, tiles
from servesim.report.dashboard.whatif import Answer
from servesim.report.frontier.drawing import Drawing
from servesim.report.theme import Mode
from servesim.screen.notes import notes
from servesim.screen.summary import print_summary

_CONFIG = {"displayModeBar": False, "responsive": True}
_WIDTH = 110
#: What a run is not to be taken without.
_NOT_CLEAN, _MISSED = "not clean", "SLO missed"


def results(answers: Mapping[str, Answer], state: State, mode: Mode) -> list[Any]:
    """Return what is shown of the answers of the configurations, by their letters."""
    failed = {letter: answer.problems for letter, answer in answers.items() if answer.problems}
    known = {letter: answer for letter, answer in answers.items() if answer.summary is not None}
    parts: list[Any] = [
        problem_list(problems, letter if len(answers) > 1 else "") for letter, problems in failed.items()
    ]
    if known:
        parts += tiles(known)
        parts += _remarks(known)
        parts += _latencies(known, state, mode)
    return parts


def summaries(answers: Mapping[str, Answer]) -> list[Any]:
    """Return the whole summary of each answer, folded."""
    return [
        html.Details(
            [
                html.Summary(f"The whole summary{f' of {letter}' if len(answers) > 1 else ''}"),
                html.Pre(_screen(answer.summary)),
            ],
            className="card",
        )
        for letter, answer in answers.items()
        if answer.summary is not None
    ]


def problem_list(problems: Sequence[Problem], letter: str = "") -> html.Div:
    """Return what is wrong with the input; of a model that does not fit, this is the memory sheet."""
    count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    of = f" of configuration {letter}" if letter else ""
    unfit = all(" does not fit on " in problem.message for problem in problems)
    heading = f"The model{of} does not fit on its GPUs" if unfit else f"{count} in the input{of}"
    return html.Div(
        [html.H3(heading), *(html.Pre(str(problem)) for problem in problems)], className="card problems"
    )


def cards(charts: Sequence[Titled], mode: Mode, kind: str) -> list[html.Div]:
    """Return charts as cards; a click on a point of a ``kind`` can be listened to."""
    return [_card(chart, mode, {"type": kind, "name": chart.title}) for chart in charts]


def legend(drawing: Drawing) -> dcc.Checklist:
    """Return a switch for each configuration of a sweep, which shows how it is drawn."""
    options = [
        {"label": html.Span([html.Img(src=_image(style.swatch()), alt=""), name]), "value": f"c{number}"}
        for number, (style, name) in enumerate(zip(drawing.chosen, names(drawing), strict=True))
    ]
    return dcc.Checklist(id="shown", options=options, value=[each["value"] for each in options], inline=True)


def _image(svg: str) -> str:
    """Return an SVG as the address of an image."""
    named = svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return f"data:image/svg+xml,{quote(named)}"


def _card(chart: Titled, mode: Mode, name: str | dict[str, str]) -> html.Div:
    drawn = dcc.Graph(
        id=name,
        figure=themed(chart.figure, mode),
        config=_CONFIG,
        responsive=True,
        style={"height": f"{chart.figure.layout.height}px"},
    )
    caption = [html.Figcaption(chart.caption)] if chart.caption else []
    return html.Div([html.H3(chart.title), drawn, *caption], className="card chart")


def _latencies(known: Mapping[str, Answer], state: State, mode: Mode) -> Iterator[html.Div]:
    """Yield the latencies of all requests, and of groups of them where there are several."""
    asked = {"ttft_s": state.demand.ttft, "tpot_s": state.demand.tpot}
    limits = {name: None if limit is None else float(limit) for name, limit in asked.items()}
    for kind, charts in (("cdf", of_letters(known, limits)), ("group", of_groups(known, limits))):
        if drawn := cards([*charts], mode, kind):
            yield html.Div(drawn, className="charts")


def _remarks(known: Mapping[str, Answer]) -> Iterator[html.Div]:
    """Yield the notes of the runs, those of one configuration under its letter."""
    said: dict[str, list[str]] = {}
    for letter, answer in known.items():
        for note in _notes(answer.summary or {}):
            said.setdefault(note, []).append(letter)
    lines = [
        note if len(letters) == len(known) else f"{', '.join(letters)}: {note}"
        for note, letters in said.items()
    ]
    if lines:
        yield html.Div(
            [html.Div(line, className="missed" if _weighs(line) else "") for line in lines],
            className="remarks",
        )


def _weighs(line: str) -> bool:
    """Tell whether a note is one that a reader must not pass over."""
    return any(each in line for each in (f"{_NOT_CLEAN}:", f"{_MISSED}:"))


def _notes(summary: Mapping[str, Any]) -> Iterator[str]:
    if not summary["accounting"]["clean"]:
        yield f"{_NOT_CLEAN}: requests were dropped, timed out or left over"
    if summary["goodput"]["met"] is False:
        target = share_of(summary["goodput"]["target"])
        yield f"{_MISSED}: less than {target} of the requests are within its limits"
    yield from notes(summary, ())


def _screen(summary: Mapping[str, Any] | None) -> str:
    out = Console(file=io.StringIO(), width=_WIDTH, highlight=False)
    print_summary(summary or {}, out)
    text: str = out.file.getvalue()  # type: ignore[attr-defined]
    return text
