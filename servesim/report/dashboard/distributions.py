"""How latencies are distributed in each configuration, and in each group of its requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from servesim.report.dashboard.charts import INSIDE, SMALL, Titled
from servesim.report.dashboard.whatif import Answer
from servesim.report.run.divided import Division, divisions
from servesim.report.run.latency import LATENCIES, Latency, cdf_line
from servesim.report.scale import Scale
from servesim.report.theme import NEUTRAL, blank, colour

#: Ticks that a small chart has room for.
_TICKS = 7
_DASHES = ("solid", "dash")


class Line(NamedTuple):
    """Times in seconds, and how their distribution is drawn: by the numbers of its colour and its dash."""

    name: str
    times: pd.Series
    hue: int
    dash: int


def distributions(lines: Sequence[Line], latency: Latency, limit_s: float | None) -> go.Figure:
    """Return the cumulative distribution of each line's times, with the limit."""
    known = [line._replace(times=line.times.dropna()) for line in lines]
    drawn = [np.atleast_1d(part) for line in known for part in latency.drawn(line.times, limit_s)]
    figure = blank(
        x=latency.axis,
        y="Share of requests",
        height=SMALL,
        xaxis=Scale.around(np.concatenate(drawn) if drawn else np.empty(0), True).axis(_TICKS)
        | {"tickangle": 0},
        yaxis={"tickformat": ".0%", "range": [0, 1.02]},
        showlegend=len(known) > 1,
        legend=INSIDE["left"],
    )
    for line in known:
        style = {"color": colour(line.hue), "width": 2.5, "dash": _DASHES[line.dash]}
        figure.add_scatter(**cdf_line(line.times, latency, style), name=line.name)
    if limit_s is not None:
        figure.add_vline(x=latency.scale * limit_s, line={"color": NEUTRAL, "width": 1.5, "dash": "dashdot"})
    return figure


def of_letters(answers: Mapping[str, Answer], limits: Mapping[str, float | None]) -> Iterator[Titled]:
    """Yield a chart for each latency, with a line for each configuration."""
    for each in LATENCIES:
        lines = [
            Line(letter, answer.times[each.column], number, number)
            for number, (letter, answer) in enumerate(answers.items())
        ]
        yield _titled(each, lines, limits, "share of completed requests")


def of_groups(answers: Mapping[str, Answer], limits: Mapping[str, float | None]) -> Iterator[Titled]:
    """Yield a chart for each latency and each way to divide the requests, with a line for each group.

    Groups differ in their colours, configurations in their dashes.
    """
    divided = {letter: _divided(answer) for letter, answer in answers.items()}
    dashes = {letter: number for number, letter in enumerate(answers)}
    for word in dict.fromkeys(word for words in divided.values() for word in words):
        for each in LATENCIES:
            groups = {
                letter: words[word].values(each.column) for letter, words in divided.items() if word in words
            }
            names = dict.fromkeys(name for known in groups.values() for name in known)
            hues = {name: hue for hue, name in enumerate(names)}
            lines = [
                Line(f"{letter} {name}" if len(answers) > 1 else name, times, hues[name], dashes[letter])
                for letter, known in groups.items()
                for name, times in known.items()
            ]
            yield _titled(each, lines, limits, f"by {word}")


def _divided(answer: Answer) -> dict[str, Division]:
    """Return the ways in which the requests of an answer divide, by what they are called."""
    workload = (answer.summary or {})["scenario"]["workload"]
    return {each.word: each for each in divisions(answer.times, workload.get("tenants") or {})}


def _titled(usual: Latency, lines: Sequence[Line], limits: Mapping[str, float | None], said: str) -> Titled:
    """Return the chart of a latency, in seconds where it is long; its title says the limit."""
    latency, limit_s = usual.suited([line.times for line in lines]), limits.get(usual.column)
    limit = f", limit {latency.told(limit_s)}" if limit_s else ""
    title = f"{latency.title} {said}" if said.startswith("by") else f"{latency.title}: {said}"
    return Titled(f"{title}{limit}", distributions(lines, latency, limit_s))
