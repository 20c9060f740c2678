"""The screen that tells what one run came to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from servesim.screen.console import print_lines
from servesim.screen.dialect import dialect, dialect_definitions, dialect_title
from servesim.screen.figures import dollars, number, scale_of
from servesim.screen.groups import class_rows, evenness, service_rows, tenant_rows
from servesim.screen.hardware import cluster, gpus, prices
from servesim.screen.load import load
from servesim.screen.notes import notes
from servesim.screen.options import scheduler
from servesim.screen.patience import retried
from servesim.screen.reuse import prefix_cache, sessions, speculation
from servesim.screen.snug import Snug
from servesim.screen.tiers import kv_tiers, swapped
from servesim.screen.traffic import traffic
from servesim.screen.words import energy, formats, goodput, memory_table
from servesim.words import listed

_PERCENTILES = ("p50", "p90", "p95", "p99")
_LATENCIES = (
    ("TTFT", "ttft_s"),
    ("TPOT", "tpot_s"),
    ("ITL", "itl_s"),
    ("E2E", "e2e_s"),
)
_IN_SECONDS = ("e2e_s", "client_queue_s", "user_e2e_s")
#: What a user sees where the client holds requests back: E2E from when they were due.
_HELD = (("client queue", "client_queue_s"), ("E2E from due", "user_e2e_s"))
_RATES = (
    ("requests/s", "requests_per_s"),
    ("input tokens/s", "input_tokens_per_s"),
    ("output tokens/s", "output_tokens_per_s"),
    ("total tokens/s", "total_tokens_per_s"),
)
_LEAST_S = 5e-7  # a part of E2E that is shorter is the rounding of sums


def print_summary(
    summary: Mapping[str, Any], out: Console, trace: Sequence[str] = (), folder: Path | None = None
) -> None:
    """Print the screen of one run.

    Args:
        summary: the dict of ``summary.json``.
        out: where to print.
        trace: notes on what was done to the rows of a trace.
        folder: where the files of the run are.

    """
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column()
    for heading, content in _sections(summary, trace, folder):
        grid.add_row(heading, Text(content) if isinstance(content, str) else content)
    print_lines(out, Text(_title(summary), style="bold"), grid)


def _title(summary: Mapping[str, Any]) -> str:
    scenario = summary["scenario"]
    hardware = listed((f"{count} x {gpu}" for gpu, count in gpus(scenario).items()), "and")
    return f"servesim {scenario['version']}: {scenario['model']['name']} on {hardware}"


def _sections(
    summary: Mapping[str, Any], trace: Sequence[str], folder: Path | None
) -> Iterator[tuple[str, RenderableType]]:
    """Yield a heading and its content, in the order of reading."""
    scenario = summary["scenario"]
    whole_run = "whole run: " if scenario["steady"] else ""  # beside figures of the steady part
    yield "Model", formats(scenario)
    yield "Cluster", cluster(scenario, summary["transfer"])
    yield "Scheduler", scheduler(scenario)
    if summary.get("speculation"):
        yield "Speculation", speculation(summary["speculation"])
    yield "Traffic", traffic(summary)
    yield "Memory", _memory(summary)
    if section := summary["offload"]:
        yield "KV tiers", kv_tiers(section, scenario["scheduler"]["offload"])
    yield "Requests", _accounting(summary["accounting"])
    if swap := summary["swap"]:
        yield "Swap", swapped(swap)
    if conversations := summary.get("sessions"):
        yield "Sessions", whole_run + sessions(conversations)
    if summary["prefill"]["cached_tokens"]:
        yield "Prefix cache", whole_run + prefix_cache(summary)
    if section := summary.get("metrics"):
        yield "Time", _time(summary)
        yield dialect_title(section), dialect(section)
    else:
        yield "Latency", _latency(summary["latency"])
        yield "Time", _time(summary)
        yield "Throughput", _throughput(summary["throughput"])
        yield "Per user", _per_user(summary["latency"]["interactivity"])
    yield "Goodput", goodput(summary["goodput"])
    if by_class := summary.get("classes"):
        yield "Classes", Snug(*class_rows(by_class))
    if by_tenant := summary.get("fairness"):
        yield "Tenants", _tenants(by_tenant, whole_run)
    yield "Cost", _cost(summary)
    yield "Energy", energy(summary)
    yield "Load", load(summary)
    yield "Notes", "\n".join(notes(summary, trace)) or "none"
    if section:
        yield "Definitions", dialect_definitions(section)
    if folder is not None:
        names = ", ".join(sorted(path.name for path in folder.iterdir() if path.is_file()))
        yield "Files", f"{folder}/: {names}"


def _memory(summary: Mapping[str, Any]) -> RenderableType:
    """Show the memory sheets of all pools side by side."""
    return Snug(*memory_table(summary))


def _accounting(accounting: Mapping[str, Any]) -> str:
    dropped = sum(accounting["dropped"].values())
    ends = ("timed_out", "running", "queued")
    rest = " + ".join(f"{accounting[end]:,} {end.replace('_', ' ')}" for end in ends)
    state = "clean" if accounting["clean"] else "NOT CLEAN"
    sent, completed = f"{accounting['injected']:,} injected", f"{accounting['completed']:,} completed"
    balance = f"{state}: {sent} = {completed} + {dropped:,} dropped + {rest}"
    return f"{balance}\n{retried(accounting)}" if accounting["retries"] else balance


def _latency(latency: Mapping[str, Mapping[str, Any]]) -> RenderableType:
    rows = []
    held = (latency["client_queue_s"]["max"] or 0.0) > 0.0
    for title, name in (*_LATENCIES, *_HELD) if held else _LATENCIES:
        row = latency[name]
        scale = 1.0 if name in _IN_SECONDS else scale_of(row["max"])
        label = f"{title} ({'s' if scale == 1 else 'ms'})"
        figures = (row[key] for key in ("mean", *_PERCENTILES, "max"))
        rows.append([label, f"{row['n']:,}", *(number(value, scale) for value in figures)])
    return Snug(["", "n", "mean", *_PERCENTILES, "max"], rows)


def _time(summary: Mapping[str, Any]) -> str:
    """Tell what the mean request spent its time on, part by part."""
    parts = {name: part for name, part in summary["breakdown_s"].items() if part and part >= _LEAST_S}
    if not parts:
        return "-"
    spent = " + ".join(f"{name.replace('_', ' ')} {number(part, 1e3)}" for name, part in parts.items())
    return f"mean ms: {spent} = {number(summary['latency']['e2e_s']['mean'], 1e3)} E2E"


def _throughput(rates: Mapping[str, Any]) -> RenderableType:
    rows = [[label, number(rates[name]), number(rates[f"{name}_per_gpu"])] for label, name in _RATES]
    return Snug(["", "cluster", "per GPU"], rows)


def _per_user(interactivity: Mapping[str, Any]) -> str:
    """Show the low side, which is the bad one here."""
    p50, p1 = (number(interactivity[name]) for name in ("p50", "p1"))
    return f"{p50} tokens/s at the median, {p1} or more for 99% of requests (1/TPOT)"


def _tenants(fairness: Mapping[str, Any], whole_run: str) -> RenderableType:
    """Show what became of each tenant's requests, what they were served, and how even that was."""
    tables = Snug(*tenant_rows(fairness)), Text(whole_run), Snug(*service_rows(fairness))
    return Group(*tables, Text(evenness(fairness)))


def _cost(summary: Mapping[str, Any]) -> str:
    cost = summary["cost"]
    per_million = {kind: dollars(cost[f"usd_per_million_{kind}_tokens"]) for kind in ("output", "total")}
    tokens = ", ".join(f"{price} per million {kind} tokens" for kind, price in per_million.items())
    steady = f"the steady {number(summary['window_s'])} s"
    spent = f"{steady if summary['scenario']['steady'] else 'the run'}: {dollars(cost['usd'])}"
    return f"{tokens}; {spent}\n{prices(summary['scenario'])}"
