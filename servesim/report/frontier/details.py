"""What is said of a point: on hovering over it, and in the panel that a click opens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import numpy as np
import pandas as pd

from servesim.frontier.replications import settings
from servesim.report.frontier.points import FAILED, written
from servesim.report.metrics import (
    ATTAINMENT,
    COST,
    GOODPUT,
    INTERACTIVITY,
    OUTPUT,
    TOTAL,
    TPOT_P50,
    TPOT_P99,
    TTFT_P50,
    TTFT_P99,
    Metric,
)
from servesim.report.theme import plain
from servesim.screen.figures import counted, money, number, percent

_ONE = (
    ("Output", OUTPUT, "tokens/s per GPU"),
    ("Input and output", TOTAL, "tokens/s per GPU"),
    ("Interactivity, median", INTERACTIVITY, "tokens/s per user"),
    ("TTFT p50", TTFT_P50, "s"),
    ("TTFT p99", TTFT_P99, "s"),
    ("TPOT p50", TPOT_P50, "ms"),
    ("TPOT p99", TPOT_P99, "ms"),
    ("Cost", COST, "per million output tokens"),
    ("SLO met by", ATTAINMENT, "of the requests"),
    ("Goodput", GOODPUT, "requests/s"),
)
_SHORT = 72  # characters of a command or a message on hovering; the panel shows them whole


class Details(TypedDict):
    """What the panel shows of a point."""

    title: str
    config: list[tuple[str, str]]
    figures: list[tuple[str, str]]
    state: str
    error: str
    commands: list[str]


def details(points: pd.DataFrame, table: pd.DataFrame) -> list[Details]:
    """Return what is said of each point, in their order."""
    keys = settings(table)
    return [_details(row, keys) for row in points.to_dict("records")]


def hover(said: Sequence[Details]) -> list[str]:
    """Return the texts of :func:`details` as Plotly shows them on hovering."""
    return [_hover(each) for each in said]


def _details(row: Mapping[Any, Any], keys: Sequence[str]) -> Details:
    figures = [(name, said) for name, metric, unit in _ONE if (said := with_interval(row, metric, unit))]
    return {
        "title": row["label"],
        "config": [(key, written(row[key])) for key in keys if row[key] != ""],
        "figures": figures,
        "state": state(row),
        "error": row["error"],
        "commands": row["commands"],
    }


def figure(value: float, metric: Metric) -> str:
    """Return a figure of the table in the unit of its metric, as it is written."""
    if np.isnan(value):
        return "-"
    if metric.unit == "%":
        return percent(value)
    return f"${money(value)}" if metric.unit == "$" else number(value, metric.scale)


def with_interval(row: Mapping[Any, Any], metric: Metric, unit: str) -> str:
    """Return a mean with its 95% interval, where there is one; empty without a figure."""
    if np.isnan(row[metric.column]):
        return ""
    said = figure(row[metric.column], metric)
    low, high = (row[f"{metric.column}.{end}"] for end in ("low", "high"))
    if not np.isnan(low):
        said += f" [{figure(low, metric)}, {figure(high, metric)}]"
    return f"{said} {unit}".strip()


def state(row: Mapping[Any, Any]) -> str:
    """Return how a point went, in words; empty when there is nothing to remark."""
    seeds, with_figures = row["seeds"], row["seeds"] - row["failed"]
    if row["state"] == FAILED:
        return "failed"
    parts = []
    if row["failed"]:
        parts.append(f"failed with {row['failed']} of {counted(seeds, 'seed')}")
    if row["unclean"]:
        parts.append(f"requests were lost with {row['unclean']} of {counted(seeds, 'seed')}")
    if row["saturated"] > 0:
        share = round(row["saturated"] * with_figures)
        parts.append("saturated" + (f" with {share} of {with_figures} seeds" if share < with_figures else ""))
    if not row["settled"]:
        parts.append("unsettled: the run is too short for a steady part")
    return "; ".join(parts)


def _hover(said: Details) -> str:
    lines = [
        f"<b>{plain(said['title'])}</b>",
        *(f"{plain(name)} = {plain(value)}" for name, value in said["config"]),
        *(f"{name}: {plain(value)}" for name, value in said["figures"]),
        *([f"<b>{said['state']}</b>"] if said["state"] else []),
        *([plain(_cut(said["error"].partition("\n")[0]))] if said["error"] else []),
        f"<i>{plain(_cut(said['commands'][0]))}</i>",
        "Click: the whole command",
    ]
    return "<br>".join(lines)


def _cut(text: str) -> str:
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 1]}…"
