"""The page of a sweep: frontiers, curves over the load, comparisons, and every point with its command."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pandas as pd

from servesim.frontier.replications import compared, settings
from servesim.report.content import Chart, Choice, Markup, Part, Section
from servesim.report.frontier.compare import differences, side_by_side
from servesim.report.frontier.curves import curves
from servesim.report.frontier.drawing import EXTRAPOLATED, LIMITS, Drawing, Sweep
from servesim.report.frontier.style import MOST_STYLES, legend
from servesim.report.frontier.tables import best_points, definitions, every_point, failures, worth
from servesim.report.frontier.view import DIFFERENCE
from servesim.report.metrics import (
    ATTAINMENT,
    COST,
    GOODPUT,
    GOODPUT_PER_GPU,
    INTERACTIVITY,
    OUTPUT,
    TOTAL,
    TPOT_P50,
    TPOT_P99,
    TTFT_P50,
    TTFT_P99,
    Metric,
)
from servesim.report.page import Page
from servesim.screen.figures import counted, number, percent
from servesim.sweeps.study import Study
from servesim.sweeps.sweep import PAGE

_PANEL = '<aside class="panel" id="panel" aria-live="polite" hidden></aside>'


def sweep_page(sweep: Sweep) -> Page:
    """Return the page of a sweep."""
    drawing = Drawing.of(sweep)
    here = Path(__file__)
    return Page(
        sweep.name,
        list(_lead(drawing)),
        list(_sections(drawing)),
        notes=list(_notes(sweep.table)),
        style=here.with_name("frontier.css").read_text(encoding="utf-8"),
        script=here.with_name("frontier.js").read_text(encoding="utf-8"),
        data={"points": list(drawing.said)},
    )


def _lead(drawing: Drawing) -> Iterator[str]:
    table, points, sweep = drawing.sweep.table, drawing.points, drawing.sweep
    if sweep.question:
        yield sweep.question
    seeds = table.seed.nunique()
    configs = counted(points.config.nunique(), "configuration")
    counts = table.status.value_counts()
    went = [f"{counts[state]:,} {said}" for state, said in _WENT.items() if state in counts]
    runs = counted(len(table), "run")
    yield f"{configs}, {counted(len(points), 'point')}, {counted(seeds, 'seed')}: {runs}, {', '.join(went)}."
    if sweep.same:
        yield f"The same in all: {' '.join(sweep.same)}"
    yield _objective(drawing)
    if sweep.baseline:
        yield from worth(points, sweep.baseline)
    yield from _outside(points)
    if seeds == 1:
        yield "One seed: there are no intervals, and small differences may be chance."
    if (extra := points.config.nunique() - MOST_STYLES) > 0:
        yield (
            f"{MOST_STYLES} of the configurations have colours, those on a Pareto front and the cheap ones "
            f"first; the other {extra} are grey, and hovering tells them apart."
        )


def _outside(points: pd.DataFrame) -> Iterator[str]:
    """Yield of which configurations how much of the time is extrapolated, the most of their loads."""
    if EXTRAPOLATED not in points:
        return
    worst = points.groupby("config").agg(label=("label", "first"), share=(EXTRAPOLATED, "max"))
    told = worst[worst.share >= _TOLD].sort_values("share", ascending=False, kind="stable")
    if told.empty:
        return
    shares = zip(told.label, told.share, strict=True)
    said = [f"{label}: {percent(float(share), 0)}" for label, share in islice(shares, _NAMED)]
    if len(told) > _NAMED:
        said.append(f"{len(told) - _NAMED} more: up to {percent(told.share.iloc[_NAMED], 0)}")
    rest = f"; less than {percent(_TOLD, 0)} of the others" if len(told) < len(worst) else ""
    yield f"Simulated time outside the calibrated ranges, at worst: {', '.join(said)}{rest}."


#: Share of simulated time from which on it is told to lie outside the calibrated ranges, and of how many.
_TOLD, _NAMED = 0.01, 6

_WENT = {"clean": "clean", "not_clean": "lost requests", "failed": "failed"}


def _objective(drawing: Drawing) -> str:
    if not drawing.limits:
        return "No SLO is the same for all points: nothing is shaded."
    said = (
        f"{LIMITS[name][0]} {number(limit, LIMITS[name][1])} {LIMITS[name][2]}"
        for name, limit in drawing.limits.items()
    )
    table = drawing.sweep.table
    targets = set(table["goodput.target"].dropna()) if "goodput.target" in table else set()
    share = f" for {percent(float(min(targets)), 0)} of the requests" if len(targets) == 1 else ""
    return f"SLO: {', '.join(said)}{share}."


def _sections(drawing: Drawing) -> Iterator[Section]:
    table = drawing.sweep.table
    asks = bool(drawing.points.met.any() or drawing.limits)
    yield Section("Best points", [best_points(drawing.points, drawing.load, drawing.chosen, asks)])
    keyed: list[Part] = [Markup(legend(drawing.points, drawing.chosen, drawing.bands))]
    parts = [*(_side_by_side(drawing) if drawing.load is None else []), *_frontiers(drawing)]
    parts += _over_load(drawing) if drawing.load else []
    parts += _differences(drawing)
    yield Section("Charts", [*keyed, *parts, Markup(_PANEL)], _HOW)
    failed = failures(table)
    if failed:
        yield Section("Failed points", [failed])
    yield Section("Definitions", [definitions(drawing.metrics)])
    yield Section("All points", [every_point(table)])


_HOW = (
    "Hover over a point for its configuration, click it for the command that runs it again. The names below "
    "show and hide a configuration in all charts; a double click leaves it alone."
)


def _frontiers(drawing: Drawing) -> list[Part]:
    output = "Output tokens per second and GPU."
    total = "Tokens of prompts and outputs per second and GPU."
    tokens = (("output", OUTPUT, output), ("input and output", TOTAL, total))
    median = "Interactivity is that of the median request."
    main = [
        drawing.front(
            f"{name} tokens", INTERACTIVITY, y, f"{said} {median} Up and right is better.", wide=True
        )
        for name, y, said in tokens
    ]
    latencies = [
        Choice(
            f"Throughput per GPU against {name}",
            [
                drawing.front(f"{said} {p}", x, y, f"{caption} Up and left is better.")
                for said, y, caption in tokens
                for p, x in (("p99", tail), ("p50", middle))
            ],
        )
        for name, middle, tail in (("TTFT", TTFT_P50, TTFT_P99), ("TPOT", TPOT_P50, TPOT_P99))
    ]
    cost = drawing.front(
        "Cost against interactivity",
        INTERACTIVITY,
        COST,
        f"Dollars for all GPUs paid for, per million output tokens. {median} Down and right is better.",
    )
    return [Choice("Throughput per GPU against interactivity", main, wide=True), *latencies, cost]


def _over_load(drawing: Drawing) -> list[Part]:
    rings = "Rings mark knees: there a curve, on linear axes, is farthest from the line between its ends."
    good = [
        drawing.loaded(name, y, f"Requests per second that met every limit of the SLO. {rings}", knees=True)
        for name, y in (("whole cluster", GOODPUT), ("per GPU", GOODPUT_PER_GPU))
    ]
    first = [each for each in drawing.metrics if each.column not in {GOODPUT.column, GOODPUT_PER_GPU.column}]
    usual = [each for each in (TTFT_P99, TTFT_P50, TPOT_P99, TPOT_P50) if each not in first]
    shown = [
        drawing.loaded(each.name, each, _sentence(each.definition or each.title)) for each in [*first, *usual]
    ]
    return [
        Choice("Goodput against load", good),
        *_attainment(drawing),
        Choice("Latency and throughput against load", shown),
    ]


def _attainment(drawing: Drawing) -> Iterator[Part]:
    if drawing.points[ATTAINMENT.column].notna().any():
        line = " The line is the target of the SLO." if drawing.target is not None else ""
        yield drawing.loaded("Attainment against load", ATTAINMENT, _sentence(ATTAINMENT.definition) + line)


def _side_by_side(drawing: Drawing) -> list[Part]:
    return [
        Chart(each.name, side_by_side(drawing.points, each, drawing.chosen), _sentence(each.definition))
        for each in drawing.metrics or [OUTPUT, TTFT_P99, TPOT_P99, COST]
    ]


def _differences(drawing: Drawing) -> list[Part]:
    """Return the differences from the baseline, over the load where there is one; one seed has none."""
    baseline = drawing.sweep.baseline
    if not baseline or drawing.sweep.table.seed.nunique() == 1:
        return []
    charts = []
    for each in drawing.metrics:
        rows = _paired(drawing, each)
        if rows.difference.notna().any():
            charts.append(_difference(drawing, each, rows, baseline))
    return [Choice(f"Difference from {baseline}", charts, wide=drawing.load is not None)] if charts else []


def _paired(drawing: Drawing, each: Metric) -> pd.DataFrame:
    """Return the paired differences beside the label, the number and the load of their points."""
    table = drawing.sweep.table
    keys = settings(table)
    needed = [*keys, "seed", *([each.column] if each.column in table else [])]
    rows = compared(table[needed], each.column, str(drawing.sweep.baseline))
    known = drawing.points[[*keys, "config", "label", "load", "state", "hole"]]
    return rows.merge(known, on=keys, how="left", validate="one_to_one")


def _difference(drawing: Drawing, each: Metric, rows: pd.DataFrame, baseline: str) -> Chart:
    caption = (
        f"{_sentence(each.definition)} Each difference is the mean over seeds, which give both sides the "
        "same requests; the interval is Student's 95% of it."
    )
    if drawing.load is None:
        caption += " Open markers: it may be chance."
        return Chart(each.name, differences(rows, each, baseline, drawing.chosen), caption)
    named = rows.rename(columns={"low": "difference.low", "high": "difference.high"})
    named["text"] = [f"<b>{label}</b>" for label in named.label]
    change = Metric(DIFFERENCE, f"{each.title}: difference", each.unit, each.scale)
    return Chart(each.name, curves(named, drawing.load_axis(), change, drawing.chosen), caption)


def _sentence(phrase: str) -> str:
    return f"{phrase[:1].upper()}{phrase[1:]}." if phrase else ""


def _notes(table: pd.DataFrame) -> Iterator[str]:
    versions = sorted(set(table["scenario.version"].dropna())) if "scenario.version" in table else []
    if versions:
        yield f"Made by servesim {', '.join(versions)}."


def write_page(folder: Path, study: Study, table: pd.DataFrame, path: Path | None = None) -> Path:
    """Write the page of a finished study, into its folder or to ``path``, and return where it is."""
    load = study.load.key if study.load else None
    name = folder.resolve().name
    sweep = Sweep(table, name, study.question, study.overrides, study.compare, study.baseline, load)
    written = path or folder / PAGE
    sweep_page(sweep).write(written)
    return written
