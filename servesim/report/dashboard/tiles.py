"""The figures of a what-if in large: of one configuration, or of both with the difference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import floor, inf, isnan, log10
from typing import Any, NamedTuple

from dash import html

from servesim.report.dashboard.whatif import Answer
from servesim.report.frontier.details import figure
from servesim.report.metrics import (
    ATTAINMENT,
    COST,
    GOODPUT,
    INTERACTIVITY,
    OUTPUT,
    TPOT_P99,
    TTFT_P99,
    Metric,
    metric,
)
from servesim.screen.figures import money, number, percent
from servesim.screen.hardware import usd_per_hour
from servesim.screen.reuse import prefill_saved
from servesim.sweeps.flat import flatten
from servesim.words import listed

_CENT = 0.01


class Tile(NamedTuple):
    """A figure with its title and its unit; shown where one of some columns is there, and not 0."""

    title: str
    unit: str
    metric: Metric
    where: Sequence[str] = ()

    def applies(self, figures: Mapping[str, Any]) -> bool:
        """Tell whether a configuration has what it tells."""
        return not self.where or any(figures.get(column) for column in self.where)


def _own(column: str, definition: str, best: int = 0, unit: str = "") -> Metric:
    return Metric(column, column, unit, 100.0 if unit == "%" else 1.0, best, definition=definition)


#: What is no figure of a summary, but follows from it: what all GPUs cost, the share of prefill that was
#: spared, the requests that were turned away, and what of the scenario makes a figure worth showing.
HOURLY = Metric("usd_per_hour", "All GPUs ($ per hour)", "$", best=-1)
_SAVED, _REJECTED = "prefill.saved", "accounting.rejected"
_ADMITS, _HANGS_UP, _TRIES_AGAIN = "admission", "client.timeout", "client.max_retries"
_TIERS, _SWAPS = "offload", "swap"

TILES = (
    Tile("TTFT p99", "s", TTFT_P99),
    Tile("TPOT p99", "ms", TPOT_P99),
    Tile("Interactivity", "tokens/s per user, median", INTERACTIVITY),
    Tile("Within SLO", "of the requests", ATTAINMENT),
    Tile("Goodput", "requests/s within the SLO", GOODPUT),
    Tile("Output", "tokens/s per GPU", OUTPUT),
    Tile("Cost", "per million output tokens", COST),
    Tile("All GPUs", "per hour", HOURLY),
    Tile("Prefix hits", "of prompt tokens", metric("prefill.hit_rate"), ("prefill.cached_tokens",)),
    Tile(
        "Prefill saved",
        "of it found, not computed",
        _own(_SAVED, "tokens found or loaded / those and the tokens computed by prefill", 1, "%"),
        (_SAVED,),
    ),
    Tile(
        "KV loaded",
        "million tokens, from the tiers",
        Metric(
            "offload.loaded_tokens",
            "KV loaded (million tokens)",
            "million tokens",
            1e-6,
            1,
            definition="tokens of prompts loaded from a tier in place of being computed",
        ),
        (_TIERS,),
    ),
    Tile(
        "Tokens per step",
        "and sequence, drafts accepted",
        _own("speculation.mean_accepted_length", "tokens that a sequence gets in a step on average", 1),
        ("speculation.num_speculative_tokens",),
    ),
    Tile(
        "Accepted",
        "of drafted tokens",
        _own("speculation.accepted_share", "drafted tokens that the model accepted / all drafted", 1, "%"),
        ("speculation.num_speculative_tokens",),
    ),
    Tile("Fairness", "Jain's index, 1: even", metric("fairness.jain_index"), ("fairness.number",)),
    Tile(
        "Rejected",
        "requests turned away",
        _own(_REJECTED, "attempts that admission control turned away", -1),
        (_REJECTED, _ADMITS),
    ),
    Tile(
        "Timed out",
        "requests given up waiting",
        _own("accounting.timed_out", "attempts whose client hung up", -1),
        ("accounting.timed_out", _HANGS_UP),
    ),
    Tile(
        "Retried",
        "attempts after a failure",
        _own("accounting.retries", "attempts to have a request served after one that failed", -1),
        ("accounting.retries", _TRIES_AGAIN),
    ),
    Tile(
        "Served",
        "of the requests, in the end",
        _own("accounting.success", "requests that completed in whatever attempt / all requests", 1, "%"),
        ("accounting.retries", _TRIES_AGAIN),
    ),
    Tile(
        "Preempted",
        "times, blocks taken away",
        _own("accounting.preemptions", "how often the blocks of a running request were taken", -1),
        ("accounting.preemptions",),
    ),
    Tile("Swapped", "times, KV to the host", _own("swap.out", "preemptions that swapped", 0), (_SWAPS,)),
    Tile(
        "Conversations",
        "completed",
        _own("sessions.completed", "conversations that came to their own end", 1),
        ("sessions.begun",),
    ),
)


def tiles(known: Mapping[str, Answer]) -> Iterator[html.Div]:
    """Yield the figures of answers, and those of features where any configuration has them."""
    figures = {letter: figures_of(answer) for letter, answer in known.items()}
    yield html.Div([_drawn(each, figures) for each in TILES if not each.where], className="tiles", id="tiles")
    features = [each for each in TILES if each.where and any(map(each.applies, figures.values()))]
    if features:
        yield html.Div([_drawn(each, figures) for each in features], className="tiles more")


def figures_of(answer: Answer) -> dict[str, Any]:
    """Return the figures of an answer by their columns; those that are not known are left out."""
    summary = answer.summary or {}
    found = {**flatten(summary), **dict(_derived(summary))}
    return {name: each for name, each in found.items() if not (isinstance(each, float) and isnan(each))}


def _derived(summary: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield what follows from a summary and is no figure of it."""
    scenario = summary["scenario"]
    tiers, client, dropped = summary["offload"], scenario["client"], summary["accounting"]["dropped"]
    yield HOURLY.column, usd_per_hour(scenario)
    yield _SAVED, prefill_saved(summary)
    yield _REJECTED, dropped.get("queue_full", 0) + dropped.get("slo", 0)
    yield _ADMITS, scenario["admission"] is not None
    yield _HANGS_UP, client["timeout_s"] is not None or client["ttft_timeout_s"] is not None
    yield _TRIES_AGAIN, client["max_retries"]
    yield _TIERS, tiers is not None
    yield _SWAPS, summary["swap"] is not None


def share_of(target: float) -> str:
    """Return a share that is asked for, with all its digits."""
    return f"{100 * target:.6g}%"


def _drawn(tile: Tile, figures: Mapping[str, Mapping[str, Any]]) -> html.Div:
    """Return a figure of one configuration, or of both with the difference."""
    asked, unit = tile.metric, tile.unit
    values = {letter: each.get(asked.column) for letter, each in figures.items()}
    rows: list[Any] = [
        html.Div(
            [
                html.Span(letter, className=f"letter {letter}") if len(values) > 1 else "",
                _said(value, asked),
            ],
            className="value missed" if asked is ATTAINMENT and _missed(figures[letter]) else "value",
        )
        for letter, value in values.items()
    ]
    if asked is ATTAINMENT:
        unit = _target(figures) or unit
    if set(values) == {"A", "B"}:
        rows.append(_difference(values["A"], values["B"], asked))
    return html.Div(
        [html.Div(tile.title, className="title"), *rows, html.Div(unit, className="unit")],
        className="tile",
        title=asked.definition,
    )


def _missed(figures: Mapping[str, Any]) -> bool:
    return figures.get("goodput.met") is False


def _target(figures: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the share of requests that is asked for, and who misses it; empty without limits."""
    if all(each.get("goodput.met") is None for each in figures.values()):
        return ""
    target = share_of(next(iter(figures.values()))["goodput.target"])
    missed = [letter for letter, each in figures.items() if _missed(each)]
    who = f" by {listed(missed, 'and')}" if len(figures) > 1 else ""
    return f"missed{who}: target {target}" if missed else f"met: target {target}"


def _said(value: float | None, asked: Metric) -> str:
    return "-" if value is None else figure(float(value), asked)


def _difference(a: float | None, b: float | None, asked: Metric) -> html.Div:
    """Return how far B is from A: green where better, from half a unit of the last digit shown on."""
    if a is None or b is None:
        return html.Div("-", className="difference")
    change = b - a
    told = asked.best and abs(change) * asked.scale >= _last_digit(max(abs(a), abs(b)), asked) / 2
    better = "" if not told else "better" if change * asked.best > 0 else "worse"
    share = [html.Span(f" ({change / a:+.1%})")] if a and asked.unit != "%" else []
    return html.Div([_signed(change, asked), *share], className=f"difference {better}", title="B less A")


def _last_digit(value: float, asked: Metric) -> float:
    """Return what the last digit of a figure stands for, as it is shown: three digits, cents, or 0.1%."""
    if asked.unit == "%":
        return 0.1
    size = abs(value) * asked.scale
    if asked.unit == "$" and size >= _CENT:
        return _CENT
    if size >= 999.5:
        return 1.0
    return float(10.0 ** (floor(log10(size)) - 2)) if size else inf


def _signed(change: float, asked: Metric) -> str:
    sign, size = "-" if change < 0 else "+", abs(change)
    if asked.unit == "%":
        return f"{sign}{percent(size).rstrip('%')} points"
    return f"{sign}${money(size)}" if asked.unit == "$" else f"{sign}{number(size, asked.scale)}"
