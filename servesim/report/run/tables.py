"""The tables of a run's page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from servesim.report.content import Section, Table
from servesim.report.run.groups import groups
from servesim.report.run.parts import LEAST_S
from servesim.screen.figures import counted, dollars, number
from servesim.screen.hardware import prices
from servesim.screen.load import load
from servesim.screen.options import scheduler
from servesim.screen.patience import SHORT_REASONS, retried, terms
from servesim.screen.reuse import prefix_cache, sessions, speculation
from servesim.screen.tiers import kv_tiers, swapped
from servesim.screen.words import energy, formats, goodput, memory_table

_PERCENTILES = ("mean", "p50", "p90", "p95", "p99", "max")


def figures_section(summary: Mapping[str, Any], notes: Sequence[str]) -> Section:
    """Return the tables of the figures that a summary has, and what to know when reading them."""
    return Section(
        "Figures",
        [
            _latency(summary["latency"]),
            Table("What it did, on what, and what it cost", ("", ""), [*_facts(summary)], words=2),
            *groups(summary),
            _memory(summary),
            Table(
                "What to know when reading them", ("",), [(note,) for note in notes or ["Nothing."]], words=1
            ),
        ],
    )


def _latency(latency: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return the latencies; those from when a request was due, where clients held any back."""
    names = {"TTFT": "ttft_s", "TPOT": "tpot_s", "ITL": "itl_s", "E2E": "e2e_s"}
    meaning = (
        "TTFT: sending to the first token. TPOT: mean gap between a request's tokens after it. ITL: "
        "all gaps between tokens, pooled. E2E: sending to the last token."
    )
    if latency["client_queue_s"]["max"]:
        names |= {"client queue": "client_queue_s", "E2E from due": "user_e2e_s"}
        meaning += " Client queue: due to sending, with attempts before. E2E from due: both together."
    rows = [
        (title, f"{latency[name]['n']:,}", *(_ms(latency[name][key]) for key in _PERCENTILES))
        for title, name in names.items()
    ]
    return Table("Latency in milliseconds", ("", "n", *_PERCENTILES), rows, meaning)


def _memory(summary: Mapping[str, Any]) -> Table:
    headings, rows = memory_table(summary)
    return Table("Memory", headings, rows, "What one GPU's memory is spent on, and what is left for KV.")


def _facts(summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    rates, cost = summary["throughput"], summary["cost"]
    ends = summary["accounting"]
    lost = {name: ends[name] for name in ("timed_out", "running", "queued") if ends[name]}
    lost |= {f"dropped ({SHORT_REASONS[reason]})": count for reason, count in ends["dropped"].items()}
    rest = "".join(f", {count:,} {name.replace('_', ' ')}" for name, count in lost.items())
    preempted = counted(ends["preemptions"], "preemption")
    yield "requests", f"{ends['completed']:,} of {ends['injected']:,} completed{rest}; {preempted}"
    if ends["retries"]:
        yield "retries", retried(ends)
    if limits := terms(summary["scenario"]):
        yield "clients", limits.removeprefix(", ")
    yield from _of_parts(summary)
    yield (
        "throughput",
        f"{number(rates['requests_per_s'])} requests/s, "
        f"{number(rates['output_tokens_per_s'])} output tokens/s, "
        f"{number(rates['total_tokens_per_s'])} tokens/s in all, "
        f"{number(rates['total_tokens_per_s_per_gpu'])} of them per GPU",
    )
    yield "goodput", goodput(summary["goodput"])
    yield "load, mean use", load(summary).replace("\n", "; ")
    million = "usd_per_million_{}_tokens"
    yield (
        "cost",
        f"{dollars(cost[million.format('output')])} per million output tokens, "
        f"{dollars(cost[million.format('total')])} per million tokens; {prices(summary['scenario'])}",
    )
    yield "energy", energy(summary)
    yield "formats", formats(summary["scenario"])
    yield "scheduler", scheduler(summary["scenario"])


def _of_parts(summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what is told of parts that not every run has."""
    if section := summary.get("sessions"):
        yield "sessions", sessions(section)
    if summary["prefill"]["cached_tokens"]:
        yield "prefix cache", prefix_cache(summary)
    if section := summary.get("speculation"):
        yield "speculation", speculation(section)
    if section := summary["offload"]:
        yield "KV tiers", kv_tiers(section, summary["scenario"]["scheduler"]["offload"]).replace("\n", "; ")
    if section := summary["swap"]:
        yield "swap", swapped(section)


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
