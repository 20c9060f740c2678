"""The screen that tells what one run came to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from servesim.check import listed
from servesim.cost.memory import MemorySheet
from servesim.screen.figures import dollars, number, percent, typed

_PERCENTILES = ("p50", "p90", "p95", "p99")
_LATENCIES = (
    ("TTFT (ms)", "ttft_s", 1e3),
    ("TPOT (ms)", "tpot_s", 1e3),
    ("ITL (ms)", "itl_s", 1e3),
    ("E2E (s)", "e2e_s", 1.0),
)
_RATES = (
    ("requests/s", "requests_per_s"),
    ("input tokens/s", "input_tokens_per_s"),
    ("output tokens/s", "output_tokens_per_s"),
    ("total tokens/s", "total_tokens_per_s"),
)
_SHARES = {
    "busy": "busy",
    "compute": "of peak compute",
    "bandwidth": "of bandwidth",
    "kv_cache": "of KV blocks",
}
#: The share of simulated time from which on extrapolation is warned of.
_MUCH = 0.05
_WORTH_NAMING = 0.01
_CALIBRATION_NOTES = {"roofline": "step times are the datasheet's (roofline): real engines are slower"}


def print_summary(
    summary: Mapping[str, Any], out: Console, notes: Sequence[str] = (), folder: Path | None = None
) -> None:
    """Print the screen of one run.

    Args:
        summary: the dict of ``summary.json``.
        out: where to print.
        notes: what was done to the rows of a trace.
        folder: where the files of the run are.

    """
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column()
    for heading, content in _sections(summary, notes, folder):
        grid.add_row(heading, Text(content) if isinstance(content, str) else content)
    out.print(Text(_title(summary), style="bold"), grid, sep="\n")


def _title(summary: Mapping[str, Any]) -> str:
    scenario = summary["scenario"]
    gpus = listed((f"{count} x {gpu}" for gpu, count in _gpus(scenario).items()), "and")
    return f"servesim {scenario['version']}: {scenario['model']['name']} on {gpus}"


def _sections(
    summary: Mapping[str, Any], notes: Sequence[str], folder: Path | None
) -> Iterator[tuple[str, RenderableType]]:
    """Yield a heading and its content, in the order of reading."""
    scenario = summary["scenario"]
    yield "Model", _model(scenario)
    yield "Cluster", _cluster(scenario)
    yield "Scheduler", _scheduler(scenario)
    yield "Traffic", _traffic(summary)
    yield "Memory", _memory(summary["memory"])
    yield "Requests", _accounting(summary["accounting"])
    yield "Latency", _latency(summary["latency"])
    yield "Throughput", _throughput(summary["throughput"])
    yield "Per user", _per_user(summary["latency"]["interactivity"])
    yield "Goodput", _goodput(summary["goodput"])
    yield "Cost", _cost(summary["cost"])
    joules = number(summary["energy"]["joules_per_output_token"])
    yield "Energy", f"{joules} J per output token (board power assumed, not measured)"
    yield "Load", _load(summary)
    yield "Notes", "\n".join(_notes(summary, notes)) or "none"
    if folder is not None:
        names = ", ".join(sorted(path.name for path in folder.iterdir() if path.is_file()))
        yield "Files", f"{folder}/: {names}"


def _model(scenario: Mapping[str, Any]) -> str:
    kv = scenario["scheduler"]["kv_cache_dtype"]
    return f"weights {scenario['model']['weights_dtype']}, KV cache {'bf16' if kv == 'auto' else kv}"


def _pools(scenario: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the pools of the cluster by role."""
    cluster = scenario["cluster"]
    if "prefill" not in cluster:
        return {"serve": cluster}
    return {role: cluster[role] for role in ("prefill", "decode")}


def _gpus(scenario: Mapping[str, Any]) -> dict[str, int]:
    """Return how many GPUs of each name the cluster has."""
    counts: dict[str, int] = {}
    for pool in _pools(scenario).values():
        name = (pool["gpu"] or scenario["gpu"])["name"]
        counts[name] = counts.get(name, 0) + pool["replicas"] * pool["tensor_parallel_size"]
    return counts


def _cluster(scenario: Mapping[str, Any]) -> str:
    parts = []
    for role, pool in _pools(scenario).items():
        word = "replica" if role == "serve" else f"{role} replica"
        plural = "" if pool["replicas"] == 1 else "s"
        gpu = (pool["gpu"] or scenario["gpu"])["name"]
        parts.append(f"{pool['replicas']} {word}{plural} of {pool['tensor_parallel_size']} x {gpu}")
    return f"{' and '.join(parts)} (tensor parallel), router {scenario['router']['kind']}"


def _scheduler(scenario: Mapping[str, Any]) -> str:
    hidden = ("kind", "block_size", "gpu_memory_utilization", "kv_cache_dtype")
    keys = {key: value for key, value in scenario["scheduler"].items() if key not in hidden}
    shown = ", ".join(f"{key}={typed(value)}" for key, value in keys.items() if value is not None)
    return f"{scenario['scheduler']['kind']}: {shown}"


def _traffic(summary: Mapping[str, Any]) -> str:
    workload, rates = summary["scenario"]["workload"], summary["throughput"]
    if workload["kind"] == "trace":
        source = f"{workload['path']} at {workload['rate_scale']:g} times its rate"
    else:
        arrivals = dict(workload["arrivals"])
        kind = arrivals.pop("kind")
        source = f"{kind} ({', '.join(f'{key}={typed(value)}' for key, value in arrivals.items())})"
    requests = rates["requests_per_s"] or None
    mean_in, mean_out = (requests and rates[f"{way}_tokens_per_s"] / requests for way in ("input", "output"))
    duration = f"in {number(summary['duration_s'])} simulated seconds"
    tokens = f"{number(mean_in)} tokens in and {number(mean_out)} out on average"
    return f"{summary['accounting']['injected']:,} requests {duration}: {source}; {tokens}"


def _memory(memory: Mapping[str, Mapping[str, Any]]) -> RenderableType:
    """Show the memory sheets of all pools side by side, in GB per GPU."""
    pools = {role: dict(sheet) for role, sheet in memory.items()}
    blocks = {role: pool.pop("kv_blocks") for role, pool in pools.items()}
    sheets = [
        MemorySheet(**{key: value for key, value in pool.items() if key != "fits"}) for pool in pools.values()
    ]
    table = _columns("GB per GPU", *("" if role == "serve" else role for role in pools))
    for rows in zip(*(sheet.lines() for sheet in sheets), strict=True):
        table.add_row(rows[0][0], *(f"{size / 1e9:,.2f}" for _, size in rows))
    size = sheets[0].block_size
    table.add_row(f"KV blocks of {size} tokens, per replica", *(f"{count:,}" for count in blocks.values()))
    return table


def _accounting(accounting: Mapping[str, Any]) -> str:
    dropped = sum(accounting["dropped"].values())
    ends = ("timed_out", "running", "queued")
    rest = " + ".join(f"{accounting[end]:,} {end.replace('_', ' ')}" for end in ends)
    state = "clean" if accounting["clean"] else "NOT CLEAN"
    sent, completed = f"{accounting['injected']:,} injected", f"{accounting['completed']:,} completed"
    return f"{state}: {sent} = {completed} + {dropped:,} dropped + {rest}"


def _latency(latency: Mapping[str, Mapping[str, Any]]) -> RenderableType:
    table = _columns("", "n", "mean", *_PERCENTILES, "max")
    for label, name, scale in _LATENCIES:
        row = latency[name]
        figures = (row[key] for key in ("mean", *_PERCENTILES, "max"))
        table.add_row(label, f"{row['n']:,}", *(number(value, scale) for value in figures))
    return table


def _throughput(rates: Mapping[str, Any]) -> RenderableType:
    table = _columns("", "cluster", "per GPU")
    for label, name in _RATES:
        table.add_row(label, number(rates[name]), number(rates[f"{name}_per_gpu"]))
    return table


def _per_user(interactivity: Mapping[str, Any]) -> str:
    """Show the low side, which is the bad one here."""
    p50, p1 = (number(interactivity[name]) for name in ("p50", "p1"))
    return f"{p50} tokens/s at the median, {p1} or more for 99% of requests (1/TPOT)"


def _goodput(goodput: Mapping[str, Any]) -> str:
    if goodput["attainment"] is None:
        return "no limits given"
    limits = ((name, limit) for name, limit in goodput["limits"].items() if limit is not None)
    asked = listed((f"{name.removesuffix('_s').upper()} <= {limit:g} s" for name, limit in limits), "and")
    target = f"target {number(goodput['target'], 100)}%: {'met' if goodput['met'] else 'MISSED'}"
    rate = f"{number(goodput['requests_per_s'])} requests/s"
    return f"{rate}; {percent(goodput['attainment'])} have {asked} ({target})"


def _cost(cost: Mapping[str, Any]) -> str:
    per_million = {kind: dollars(cost[f"usd_per_million_{kind}_tokens"]) for kind in ("output", "total")}
    prices = (f"{price} per million {kind} tokens" for kind, price in per_million.items())
    return f"{', '.join(prices)}; the run: {dollars(cost['usd'])}"


def _load(summary: Mapping[str, Any]) -> str:
    shares = (f"{percent(summary['utilisation'][name])} {words}" for name, words in _SHARES.items())
    return f"{_saturation(summary)}; {', '.join(shares)}"


def _saturation(summary: Mapping[str, Any]) -> str:
    if summary["saturated"] is None:
        arrivals = summary["scenario"]["workload"].get("arrivals", {})
        return "closed loop" if arrivals.get("kind") == "closed_loop" else "too short to tell saturation"
    return "SATURATED" if summary["saturated"] else "not saturated"


def _extrapolation(calibration: Mapping[str, Any]) -> Iterator[str]:
    """Yield a warning where much of the time is outside the calibrated ranges, naming the operations."""
    if (calibration["extrapolated"] or 0.0) <= _MUCH:
        return
    outside = {name: each["extrapolated"] for name, each in calibration["operations"].items()}
    named = listed(
        (
            f"{name} {percent(share)}"
            for name, share in sorted(outside.items(), key=lambda item: -item[1])
            if share >= _WORTH_NAMING
        ),
        "and",
    )
    yield f"{percent(calibration['extrapolated'])} of the time is outside the calibrated ranges: {named}"


def _notes(summary: Mapping[str, Any], notes: Sequence[str]) -> Iterator[str]:
    """Yield what a reader must know to read the figures rightly."""
    accounting, scenario = summary["accounting"], summary["scenario"]
    if summary["calibration"]["name"] in _CALIBRATION_NOTES:
        yield _CALIBRATION_NOTES[summary["calibration"]["name"]]
    yield from _extrapolation(summary["calibration"])
    if scenario["ignore_capacity"]:
        yield "ignore_capacity: KV blocks as many as could be used, whether they fit or not"
    if scenario["steady"]:
        yield f"figures of the steady part only, from {number(summary['warmup_cut_s'])} s on"
    for reason, count in accounting["dropped"].items():
        yield f"{count:,} requests dropped: {reason.replace('_', ' ')}"
    counts = {
        "outputs cut at max_model_len": accounting["length_capped"],
        "preemptions": accounting["preemptions"],
        "arrivals past the horizon, not sent": accounting["not_sent"],
    }
    yield from (f"{count:,} {what}" for what, count in counts.items() if count)
    yield from notes


def _columns(*headings: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="", show_edge=False)
    for index, heading in enumerate(headings):
        table.add_column(heading, justify="right" if index else "left", no_wrap=True)
    return table
