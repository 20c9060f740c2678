"""The page of one run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from servesim.check import ConfigError
from servesim.config.saved import saved_deployments
from servesim.report.content import Chart, Section
from servesim.report.page import Page
from servesim.report.roofline import roofline, roofs_in_words
from servesim.report.run import ends, latency, load, parts, steps
from servesim.report.run.bins import BINS
from servesim.report.run.divided import divided_section
from servesim.report.run.saved import Pool, Run
from servesim.report.run.tables import bands_table, figures_section
from servesim.results.result import Result
from servesim.screen.figures import counted, number
from servesim.screen.hardware import cluster, gpus
from servesim.screen.notes import notes
from servesim.words import listed

_PARTS = (
    "Queue: until first scheduled. Prefill: until the whole prompt is computed. Preempted: thrown out, or "
    "recomputing. Transfer: KV on its way to the decode pool. Decode queue: waiting there. Decode: the rest."
)


def write_page(source: Result | Path, path: Path, config_dir: Path | None = None) -> None:
    """Write the page of a run, given as its result or its folder, to ``path``.

    Args:
        source: what a run left.
        path: the file to write.
        config_dir: where profiles of the user's own lie, laid out as ``conf/``.

    Raises:
        ConfigError: the folder is not one of a run.
    """
    run = Run.read(source) if isinstance(source, Path) else Run.of(source)
    run_page(run, config_dir).write(path)


def run_page(run: Run, config_dir: Path | None = None) -> Page:
    """Return the page of a run; what cannot be drawn is left out, and the notes say why."""
    breakdowns, missing = _breakdowns(run, config_dir)
    completed = run.requests[run.requests.e2e_s.notna()]
    sections = [figures_section(run.summary, list(_notes(run)))]
    if len(completed):
        sections += [_latencies(run, completed), *_divided(run, completed), _where_time_went(completed)]
    if {"timed_out", "dropped"} & {*run.requests.status[run.requests.ended_s.notna()]} and len(run.steps):
        sections.append(_ends(run))
    if len(run.steps):
        sections += [_load(run), _steps(run, breakdowns)]
    return Page(_title(run), list(_lead(run)), sections, [_on_the_drawings(), *missing])


def _title(run: Run) -> str:
    scenario = run.summary["scenario"]
    hardware = listed((f"{count} x {gpu}" for gpu, count in gpus(scenario).items()), "and")
    return f"{scenario['model']['name']} on {hardware}"


def _lead(run: Run) -> Iterator[str]:
    """Yield what was run, in sentences."""
    summary, scenario = run.summary, run.summary["scenario"]
    traffic = summary["traffic"]
    rate = f" at {number(traffic['offered_per_s'])}/s" if traffic["offered_per_s"] else ""
    yield (
        f"Scheduler {scenario['scheduler']['kind']} on {cluster(scenario, summary['transfer'])}; "
        f"{counted(traffic['requests'], 'request')}{rate} with {number(traffic['input_tokens'])} tokens in "
        f"and {number(traffic['output_tokens'])} out on average, over in {number(summary['duration_s'])} "
        f"simulated seconds; seed {scenario['seed']}."
    )


def _latencies(run: Run, completed: pd.DataFrame) -> Section:
    """Return the latencies of the completed requests, as the tables have them."""
    limits = run.summary["goodput"]["limits"]
    charts = []
    for usual in latency.LATENCIES:
        known, limit_s = completed[usual.column].dropna(), limits[usual.column]
        if known.empty:
            continue
        each = usual.suited([known])
        charts.append(
            Chart(f"{each.title}, distribution", latency.distribution(known, each, limit_s), each.meaning)
        )
        charts.append(
            Chart(
                f"{each.title} over time",
                latency.over_time(completed, each, run.span, limit_s),
                "Completed requests: median and 95th percentile by time of sending, in up to "
                f"{latency.BINS} equal stretches of time, where they have {latency.FEWEST} requests or more.",
            )
        )
    whole = " of the whole run" if run.summary["scenario"]["steady"] else ""
    return Section("Latency", charts, f"Of completed requests{whole}.")


def _divided(run: Run, completed: pd.DataFrame) -> Iterator[Section]:
    """Yield the latencies of tenants and classes, where there are several."""
    tenants = run.summary["scenario"]["workload"].get("tenants") or {}
    section = divided_section(completed, tenants, run.summary["goodput"]["limits"])
    if section is not None:
        yield section


def _where_time_went(completed: pd.DataFrame) -> Section:
    of_e2e, of_ttft = parts.e2e_parts(completed), parts.ttft_parts(completed)
    e2e, ttft = parts.bands(completed, "e2e_s", of_e2e), parts.bands(completed, "ttft_s", of_ttft)
    first = (
        "Requests in bands of TTFT percentiles: what came before their first token. Decode: the step that "
        "emits it where that is a decode step, and preemptions before it."
    )
    return Section(
        "Where time went",
        [
            Chart(
                "E2E, from the fastest half to the slowest 1%",
                parts.stacked(e2e, [*of_e2e], shares=False),
                f"Completed requests in bands of E2E percentiles: the mean of each part. {_PARTS}",
            ),
            Chart(
                "The same as shares of E2E",
                parts.stacked(e2e, [*of_e2e], shares=True),
                "Mean seconds of each part over the mean E2E of the band.",
            ),
            Chart(
                "TTFT, from the fastest half to the slowest 1%",
                parts.stacked(ttft, [*of_ttft], shares=False),
                first,
            ),
            Chart(
                "The same as shares of TTFT",
                parts.stacked(ttft, [*of_ttft], shares=True),
                "Mean seconds of each part over the mean TTFT of the band.",
            ),
            bands_table(e2e, [*of_e2e]),
        ],
        "Why are the slow ones slow? Each request's time is the sum of its parts.",
    )


def _ends(run: Run) -> Section:
    each = "attempt" if run.summary["accounting"]["retries"] else "request"
    chart = Chart(
        "Ends over time",
        ends.ends_figure(ends.ends_over_time(run), run.span[1]),
        f"Ends per second by time of the end, in {ends.BINS} equal stretches of time; each {each} ends once.",
        wide=True,
    )
    return Section("Ends", [chart], "How many were served, and since when not all of them?")


def _load(run: Run) -> Section:
    loads = {pool.title: load.load_over_time(run, pool) for pool in run.pools}
    end_s = run.span[1]
    charts = [
        Chart(
            "Batch size",
            load.batch_figure(loads, end_s),
            "Sequences that a step computes, decodes and prompts: the mean over time and replicas; none "
            "between steps.",
        ),
        Chart(
            "Queue length",
            load.queue_figure(load.waiting_over_time(run), loads, end_s),
            "Requests sent but not yet scheduled, on all replicas together.",
        ),
        Chart(
            "KV cache",
            load.kv_figure(loads, end_s),
            "Blocks held during steps, of all that the replicas have.",
            wide=len(loads) > 1,
        ),
    ]
    for pool in run.pools:
        suffix = "" if len(run.pools) == 1 else f", {pool.title}"
        charts.append(
            Chart(
                f"Utilisation{suffix}",
                load.utilisation_figure(loads[pool.title], end_s),
                "Busy: time in steps. Compute: FLOPs over the peak of the weights' format. Bandwidth: bytes "
                "of weights and KV over that of HBM. All of paid GPU time.",
            )
        )
    return Section(
        "Load", charts, f"Means over {BINS} equal stretches of time, which add up to the run's totals."
    )


def _steps(run: Run, breakdowns: dict[str, list[Any]]) -> Section:
    charts = []
    for pool in run.pools:
        own, suffix = run.steps_of(pool), "" if len(run.pools) == 1 else f", {pool.title}"
        if own.empty:
            continue
        peaks = {_format(run, pool): pool.peak_flops_per_s}
        charts.append(
            Chart(
                f"Steps on the roofline{suffix}",
                roofline(steps.roofline_points(run, pool), peaks, pool.gpu.hbm_bytes_per_s),
                "A point is a run of equal steps of one replica: FLOPs per byte of weights and KV, and the "
                f"FLOP/s reached per GPU. {roofs_in_words(peaks, pool.gpu.hbm_bytes_per_s)}",
            )
        )
        if pool.role in breakdowns:
            named = "; ".join(str(typical) for typical, _ in breakdowns[pool.role])
            charts.append(
                Chart(
                    f"What a typical step consists of{suffix}",
                    steps.breakdown_figure(breakdowns[pool.role]),
                    f"Of the time in steps of a kind, half went to shorter ones than the one shown: {named}.",
                )
            )
    return Section("Steps", charts)


def _format(run: Run, pool: Pool) -> str:
    """Return the format whose peak counts: the weights', where the GPU multiplies in it."""
    is_bf16 = pool.peak_flops_per_s == pool.gpu.bf16_flops_per_s
    return "bf16" if is_bf16 else str(run.summary["scenario"]["model"]["weights_dtype"])


def _breakdowns(run: Run, config_dir: Path | None) -> tuple[dict[str, list[Any]], list[str]]:
    """Return typical steps with their operations by role; or why there are none."""
    try:
        deployments = saved_deployments(run.summary["scenario"], config_dir)
    except ConfigError as error:
        reasons = "; ".join(str(problem) for problem in error.problems)
        return {}, [f"The step-time breakdown is left out: {reasons}"]
    return {
        pool.role: [
            (typical, typical.operations(deployment.step_time))
            for typical in steps.typical_steps(run.steps_of(pool))
        ]
        for pool, deployment in zip(run.pools, deployments, strict=True)
    }, []


def _notes(run: Run) -> Iterator[str]:
    """Yield what the screen notes of the run."""
    yield from (f"{line[0].upper()}{line[1:]}." for line in notes(run.summary, ()))


def _on_the_drawings() -> str:
    most = f"{latency.MOST_POINTS:,} requests and {steps.MOST_POINTS:,} runs of steps"
    return f"Drawings of points show at most {most}, chosen by a hash; lines, bars and tables leave none out."
