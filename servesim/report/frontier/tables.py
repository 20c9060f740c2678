"""The tables of a sweep's page: the best points, what failed, every point, and what the figures mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from servesim.frontier.replications import bracket_of, settings
from servesim.report.content import Markup, Table
from servesim.report.frontier.details import figure
from servesim.report.frontier.points import CLEAN, short_names, written
from servesim.report.frontier.style import Style
from servesim.report.metrics import (
    ATTAINMENT,
    COST,
    GOODPUT_PER_GPU,
    OUTPUT,
    SHOWN,
    TOTAL,
    TPOT_P99,
    TTFT_P99,
    Metric,
)

_HEADED = (
    ("$ per million output tokens", COST),
    ("output tokens/s per GPU", OUTPUT),
    ("in+out tokens/s per GPU", TOTAL),
    ("p99 TTFT (s)", TTFT_P99),
    ("p99 TPOT (ms)", TPOT_P99),
    ("requests that met the SLO", ATTAINMENT),
    ("goodput (requests/s per GPU)", GOODPUT_PER_GPU),
)


Row = list[str | Markup]


def command(text: str) -> Markup:
    """Return a button that copies a command, and the command."""
    said = escape(text, quote=True)
    return Markup(
        f'<span class="command"><button type="button" class="copy" data-copy="{said}">Copy</button>'
        f'<code title="{said}">{said}</code></span>'
    )


def worth(points: pd.DataFrame, baseline: str) -> Iterator[str]:
    """Yield what each variant saves of the baseline's cost within the SLO, each at its own cheapest load.

    Nothing where the baseline never meets it, or a variant stands for several configurations.
    """
    if "variant" not in points or points.groupby("variant").config.nunique().max() > 1:
        return
    fit = points[(points.state == CLEAN) & points.meets & points[COST.column].notna()]
    least = fit.groupby("variant", sort=False)[COST.column].min().sort_values()
    if baseline not in least:
        return
    usd = least.pop(baseline)
    said = [f"{variant} {cost / usd - 1:+.0%} (${cost:,.2f})" for variant, cost in least.items()]
    never = [variant for variant in points.variant.unique() if variant not in {*least.index, baseline}]
    said += [f"{variant} meets it at no load" for variant in never]
    yield f"Least cost within the SLO: {baseline} ${usd:,.2f} per million output tokens; {', '.join(said)}."


def best_points(points: pd.DataFrame, load: str | None, chosen: Sequence[Style], asks: bool) -> Table:
    """Return per configuration its cheapest clean point, if ``asks`` of those that meet the SLO."""
    rows: list[tuple[float, Row]] = []
    without: list[Row] = []
    for config, style in enumerate(chosen):
        own = points[points.config == config]
        fit = own[(own.state == CLEAN) & own[COST.column].notna() & (own.meets | (not asks))]
        name = Markup(f"{style.swatch()} {escape(str(own.label.iloc[0]))}")
        ends = [_bracket(own)] if asks and load else []
        if fit.empty:
            without.append([name, *ends, "none", *[""] * (len(_HEADED) + (load is not None))])
            continue
        best = fit.iloc[int(fit[COST.column].argmin())]
        at = [written(best.load)] if load else []
        figures = [
            figure(best.pooled if metric is ATTAINMENT else best[metric.column], metric)
            for _, metric in _HEADED
        ]
        rows.append((best[COST.column], [name, *ends, *at, *figures, command(best.commands[0])]))
    ranked = [row for _, row in sorted(rows, key=lambda each: each[0])]
    loads = [short_names([load])[load]] if load else []
    meets = "that meets the SLO, the requests of all seeds together, and is" if asks else "that is"
    lost = "Requests turned away, timed out or left over count as misses." if asks else "No request was lost."
    slo = ["SLO"] if asks and load else []
    return Table(
        "The cheapest point of each configuration" + (" that meets the SLO" if asks else ""),
        ["configuration", *slo, *loads, *(heading for heading, _ in _HEADED), "command"],
        [*ranked, *without],
        f"Of each configuration, the point {meets} settled and not saturated, with the fewest dollars per "
        f"million output tokens; the cheapest first, means over the seeds. {lost} The command runs the first "
        "seed.",
    )


def _bracket(own: pd.DataFrame) -> str:
    """Return up to which of its loads a configuration meets the SLO, in words."""
    return str(bracket_of(own, "load"))


def failures(table: pd.DataFrame) -> Table | None:
    """Return what failed, with its message; None when nothing did."""
    failed = table[table.status == "failed"]
    if failed.empty:
        return None
    keys, names = _named(table)
    rows: list[Row] = [
        [
            *(written(row[key]) for key in keys),
            Markup(f'<span class="message">{escape(str(row["error"]))}</span>'),
            command(row["command"]),
        ]
        for row in failed.to_dict("records")
    ]
    return Table(
        "Points that failed", [*names, "message", "command"], rows, "These have no figures.", len(names) + 2
    )


def every_point(table: pd.DataFrame) -> Table:
    """Return every row of the table, with the command that runs it again."""
    keys, names = _named(table)
    known = table.assign(**{metric.column: np.nan for _, metric in _HEADED if metric.column not in table})
    rows: list[Row] = [
        [
            *(written(row[key]) for key in keys),
            _went(row),
            *(figure(row[metric.column], metric) for _, metric in _HEADED),
            command(row["command"]),
        ]
        for row in known.to_dict("records")
    ]
    headings = [*names, "went", *(heading for heading, _ in _HEADED), "command"]
    return Table(
        f"All {len(rows):,} points and their commands", headings, rows, "", len(names) + 1, folded=True
    )


def _went(row: Mapping[Any, Any]) -> str:
    if row["status"] != "clean":
        return str(row["status"]).replace("_", " ")
    if row.get("saturated") is True or row.get("saturated") == 1:
        return "saturated"
    settled = row.get("settled")
    return "unsettled" if settled is not None and settled == 0 else "clean"


def _named(table: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Return the columns that tell points apart, and their headings."""
    keys = [
        key for key in [*settings(table), "seed"] if key == "seed" or table[key].nunique(dropna=False) > 1
    ]
    names = short_names(keys)
    return keys, [names[key] for key in keys]


def definitions(metrics: Sequence[Metric]) -> Table:
    """Return what the figures mean."""
    known = {each.title: each.definition for each in (*SHOWN, *metrics) if each.definition}
    rows = [[title, f"{text[0].upper()}{text[1:]}."] for title, text in known.items()]
    caption = (
        "Of a point that was run with several seeds, every figure is the mean over them, and its interval is "
        "Student's 95% interval of that mean; of a share, it ends at 0 and 100%. Where two figures have one, "
        "the point lies in a box, and the band is what the box sweeps on its way to the next point. "
        "Percentiles are those of the requests of one run."
    )
    return Table("What the figures mean", ["figure", "definition"], rows, caption, words=2)
