"""The table that compares several runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from servesim.screen.figures import number, percent

_COMPARED = (
    "TTFT\np50 ms",
    "\np99 ms",
    "TPOT\np50 ms",
    "\np99 ms",
    "tok/s out\nper GPU",
    "SLO\nmet by",
    "$ per M\ntok out",
)
_NO_FIGURES = [*("-" for _ in _COMPARED), "error"]


def print_comparison(
    runs: Sequence[tuple[str, str, Mapping[str, Any] | None]], out: Console, files: str = ""
) -> None:
    """Print one row for each run: its name, what sets it apart, and its summary (None: it could not run)."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column()
    table.add_column("\nrun")
    for heading in _COMPARED:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("\noutcome", no_wrap=True)
    for name, label, summary in runs:
        figures = _figures(summary) if summary else _NO_FIGURES
        table.add_row(Text(name), Text(label, overflow="fold"), *figures)
    out.print(table)
    if files:
        out.print(Text(f"Files: {files}", overflow="fold"))


def _figures(summary: Mapping[str, Any]) -> list[str]:
    latency = summary["latency"]
    return [
        *(number(latency[name][p], 1e3) for name in ("ttft_s", "tpot_s") for p in ("p50", "p99")),
        number(summary["throughput"]["output_tokens_per_s_per_gpu"]),
        percent(summary["goodput"]["attainment"]),
        number(summary["cost"]["usd_per_million_output_tokens"]),
        _outcome(summary),
    ]


def _outcome(summary: Mapping[str, Any]) -> str:
    """Return the one word that matters most."""
    if not summary["accounting"]["clean"]:
        return "NOT CLEAN"
    return "saturated" if summary["saturated"] else "clean"
