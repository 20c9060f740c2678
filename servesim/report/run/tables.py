"""The tables of a run's page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from servesim.report.page import Section, Table
from servesim.report.run.parts import LEAST_S
from servesim.screen.figures import counted, dollars, number, percent, typed
from servesim.screen.hardware import prices
from servesim.screen.patience import retried
from servesim.screen.words import energy, formats, goodput, memory_table

_PERCENTILES = ("mean", "p50", "p90", "p95", "p99", "max")


def figures_section(summary: Mapping[str, Any], notes: Sequence[str]) -> Section:
    """Return the tables of the figures that a summary has, and what to know when reading them."""
    rows = [
        (
            title,
            f"{summary['latency'][name]['n']:,}",
            *(_ms(summary["latency"][name][key]) for key in _PERCENTILES),
        )
        for title, name in (("TTFT", "ttft_s"), ("TPOT", "tpot_s"), ("ITL", "itl_s"), ("E2E", "e2e_s"))
    ]
    return Section(
        "Figures",
        [
            Table(
                "Latency in milliseconds",
                ("", "n", *_PERCENTILES),
                rows,
                "TTFT: sending to the first token. TPOT: mean gap between a request's tokens after it. ITL: "
                "all gaps between tokens, pooled. E2E: sending to the last token.",
            ),
            Table("What it did, on what, and what it cost", ("", ""), [*_facts(summary)], words=2),
            _memory(summary),
            Table(
                "What to know when reading them", ("",), [(note,) for note in notes or ["Nothing."]], words=1
            ),
        ],
    )


def _memory(summary: Mapping[str, Any]) -> Table:
    headings, rows = memory_table(summary)
    return Table("Memory", headings, rows, "What one GPU's memory is spent on, and what is left for KV.")


def _facts(summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    rates, used, cost = (summary[name] for name in ("throughput", "utilisation", "cost"))
    ends = summary["accounting"]
    lost = {name: ends[name] for name in ("timed_out", "running", "queued") if ends[name]}
    lost |= {f"dropped ({reason})": count for reason, count in ends["dropped"].items()}
    rest = "".join(f", {count:,} {name.replace('_', ' ')}" for name, count in lost.items())
    preempted = counted(ends["preemptions"], "preemption")
    yield "requests", f"{ends['completed']:,} of {ends['injected']:,} completed{rest}; {preempted}"
    if ends["retries"]:
        yield "retries", retried(ends)
    yield (
        "throughput",
        f"{number(rates['requests_per_s'])} requests/s, "
        f"{number(rates['output_tokens_per_s'])} output tokens/s, "
        f"{number(rates['total_tokens_per_s'])} tokens/s in all, "
        f"{number(rates['total_tokens_per_s_per_gpu'])} of them per GPU",
    )
    yield "goodput", goodput(summary["goodput"])
    yield (
        "mean use",
        f"{percent(used['busy'])} busy, {percent(used['compute'])} of peak compute, "
        f"{percent(used['bandwidth'])} of bandwidth, {percent(used['kv_cache'])} of KV blocks",
    )
    million = "usd_per_million_{}_tokens"
    yield (
        "cost",
        f"{dollars(cost[million.format('output')])} per million output tokens, "
        f"{dollars(cost[million.format('total')])} per million tokens; {prices(summary['scenario'])}",
    )
    yield "energy", energy(summary)
    yield "formats", formats(summary["scenario"])
    scheduler = {key: value for key, value in summary["scenario"]["scheduler"].items() if value is not None}
    yield "scheduler", ", ".join(f"{key}={typed(value)}" for key, value in scheduler.items() if key != "kind")


def bands_table(e2e: pd.DataFrame, parts: list[str]) -> Table:
    """Return the table of :func:`servesim.report.run.latency.bands`; parts that nobody had are left out."""
    shown = [part for part in parts if e2e[part].max() >= LEAST_S]
    return Table(
        "Bands of E2E: mean milliseconds",
        ("band", "requests", "tokens in", "tokens out", *(part.replace("_", " ") for part in shown), "E2E"),
        [
            (
                row["band"],
                f"{row['requests']:,}",
                number(row["input_tokens"]),
                number(row["output_tokens"]),
                *(_ms(row[part]) for part in shown),
                _ms(row["mean_s"]),
            )
            for row in e2e.to_dict("records")
        ],
    )


def _ms(seconds: float | None) -> str:
    return number(seconds, 1e3)
