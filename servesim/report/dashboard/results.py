"""What the dashboard shows of answers: figures with their differences, charts, or the problems instead."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from dash import dcc, html
from rich.console import Console

from servesim.check import Problem, listed
from servesim.report.dashboard.charts import Titled, distributions, names, themed
from servesim.report.dashboard.state import State
from servesim.report.dashboard.whatif import Answer
from servesim.report.frontier.details import figure
from servesim.report.frontier.drawing import Drawing
from servesim.report.metrics import (
    ATTAINMENT,
    COST,
    GOODPUT,
    INTERACTIVITY,
    OUTPUT,
    TPOT_P99,
    TTFT_P99,
    Metric,
)
from servesim.report.run.latency import LATENCIES
from servesim.report.theme import Mode
from servesim.screen.figures import money, number, percent
from servesim.screen.hardware import usd_per_hour
from servesim.screen.notes import notes
from servesim.screen.summary import print_summary
from servesim.sweeps.flat import flatten

#: The price of the cluster, which is no figure of a summary but follows from its scenario.
HOURLY = Metric("usd_per_hour", "All GPUs ($ per hour)", "$", best=-1)

_TILES = (
    ("TTFT p99", "s", TTFT_P99),
    ("TPOT p99", "ms", TPOT_P99),
    ("Interactivity", "tokens/s per user, median", INTERACTIVITY),
    ("Within SLO", "of the requests", ATTAINMENT),
    ("Goodput", "requests/s within the SLO", GOODPUT),
    ("Output", "tokens/s per GPU", OUTPUT),
    ("Cost", "per million output tokens", COST),
    ("All GPUs", "per hour", HOURLY),
)
_CONFIG = {"displayModeBar": False, "responsive": True}
_WIDTH = 110
_MISSED = "SLO missed"


def results(answers: Mapping[str, Answer], state: State, mode: Mode) -> list[Any]:
    """Return what is shown of the answers of the configurations, by their letters."""
    failed = {letter: answer.problems for letter, answer in answers.items() if answer.problems}
    known = {letter: answer for letter, answer in answers.items() if answer.summary is not None}
    parts: list[Any] = [
        problem_list(problems, letter if len(answers) > 1 else "") for letter, problems in failed.items()
    ]
    if known:
        parts.append(_tiles(known))
        parts += _remarks(known)
        parts.append(_latencies(known, state, mode))
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


def _latencies(known: Mapping[str, Answer], state: State, mode: Mode) -> html.Div:
    limits = {"ttft_s": state.demand.ttft, "tpot_s": state.demand.tpot}
    times = {letter: answer.times for letter, answer in known.items()}
    drawn = []
    for each in LATENCIES:
        latency = each.suited([part[each.column] for part in times.values()])
        given = limits.get(latency.column)
        limit_s = None if given is None else float(given)
        title = f"{latency.title}: share of requests" + (
            f", limit {latency.told(limit_s)}" if limit_s else ""
        )
        chart = distributions(times, latency, limit_s)
        drawn.append(_card(Titled(title, chart), mode, f"cdf-{latency.column}"))
    return html.Div(drawn, className="charts")


def _tiles(known: Mapping[str, Answer]) -> html.Div:
    figures = {letter: _figures(answer) for letter, answer in known.items()}
    return html.Div([_tile(*tile, figures) for tile in _TILES], className="tiles", id="tiles")


def _figures(answer: Answer) -> dict[str, Any]:
    summary = answer.summary or {}
    return {**flatten(summary), HOURLY.column: usd_per_hour(summary["scenario"])}


def _tile(title: str, unit: str, metric: Metric, figures: Mapping[str, Mapping[str, Any]]) -> html.Div:
    """Return a figure of one configuration, or of both with the difference."""
    values = {letter: each.get(metric.column) for letter, each in figures.items()}
    rows: list[Any] = [
        html.Div(
            [
                html.Span(letter, className=f"letter {letter}") if len(values) > 1 else "",
                _said(value, metric),
            ],
            className="value missed" if metric is ATTAINMENT and _missed(figures[letter]) else "value",
        )
        for letter, value in values.items()
    ]
    if metric is ATTAINMENT:
        unit = _target(figures) or unit
    if set(values) == {"A", "B"}:
        rows.append(_difference(values["A"], values["B"], metric))
    return html.Div(
        [html.Div(title, className="title"), *rows, html.Div(unit, className="unit")],
        className="tile",
        title=metric.definition,
    )


def _missed(figures: Mapping[str, Any]) -> bool:
    return figures.get("goodput.met") is False


def _target(figures: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the share of requests that is asked for, and who misses it; empty without limits."""
    if all(each.get("goodput.met") is None for each in figures.values()):
        return ""
    target = _share(next(iter(figures.values()))["goodput.target"])
    missed = [letter for letter, each in figures.items() if _missed(each)]
    who = f" by {listed(missed, 'and')}" if len(figures) > 1 else ""
    return f"missed{who}: target {target}" if missed else f"met: target {target}"


def _share(target: float) -> str:
    return f"{100 * target:.6g}%"


def _said(value: float | None, metric: Metric) -> str:
    return "-" if value is None else figure(float(value), metric)


def _difference(a: float | None, b: float | None, metric: Metric) -> html.Div:
    """Return how far B is from A, green where that is better."""
    if a is None or b is None:
        return html.Div("-", className="difference")
    change = b - a
    better = "" if change == 0 else "better" if change * metric.best > 0 else "worse"
    share = [html.Span(f" ({change / a:+.1%})")] if a and metric.unit != "%" else []
    return html.Div([_signed(change, metric), *share], className=f"difference {better}", title="B less A")


def _signed(change: float, metric: Metric) -> str:
    sign, size = "-" if change < 0 else "+", abs(change)
    if metric.unit == "%":
        return f"{sign}{percent(size).rstrip('%')} points"
    return f"{sign}${money(size)}" if metric.unit == "$" else f"{sign}{number(size, metric.scale)}"


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
            [html.Div(line, className="missed" if _MISSED in line else "") for line in lines],
            className="remarks",
        )


def _notes(summary: Mapping[str, Any]) -> Iterator[str]:
    if not summary["accounting"]["clean"]:
        yield "not clean: requests were dropped, timed out or left over"
    if summary["goodput"]["met"] is False:
        target = _share(summary["goodput"]["target"])
        yield f"{_MISSED}: less than {target} of the requests are within its limits"
    yield from notes(summary, ())


def _screen(summary: Mapping[str, Any] | None) -> str:
    out = Console(file=io.StringIO(), width=_WIDTH, highlight=False)
    print_summary(summary or {}, out)
    text: str = out.file.getvalue()  # type: ignore[attr-defined]
    return text
