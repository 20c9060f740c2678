"""What the screen of a run and its page both say of groups of requests: classes and tenants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from servesim.screen.figures import counted, number, percent

Rows = list[list[str]]


def class_rows(classes: Mapping[str, Mapping[str, Any]]) -> tuple[list[str], Rows]:
    """Return headings and rows: what each class got, the best first."""
    rows = []
    for name, row in classes.items():
        times = [number(row["ttft_s"][key], 1e3) for key in ("p50", "p99")]
        times += [number(row["e2e_s"][key]) for key in ("p50", "p99")]
        good = "-" if row["attainment"] is None else percent(row["attainment"])
        rows.append([name, f"{row['requests']:,}", *times, good])
    return ["priority", "n", "TTFT p50 (ms)", "p99", "E2E p50 (s)", "p99", "good"], rows


def tenant_rows(fairness: Mapping[str, Any]) -> tuple[list[str], Rows]:
    """Return headings and rows: what each tenant got, and what is due to it where that differs."""
    tenants, rows = fairness["tenants"], []
    weighted = _weighted(fairness)
    for name, row in tenants.items():
        times = (number(row["ttft_s"][key], 1e3) for key in ("mean", "p50", "p99"))
        rates = (number(row[key]) for key in ("service_per_s", "backlogged_service_per_s"))
        own = [f"{row['weight']:g}"] if weighted else []
        rows.append([name, *own, f"{row['requests']:,}", *times, *rates])
    weight = ["weight"] if weighted else []
    return ["", *weight, "n", "TTFT mean (ms)", "p50", "p99", "service/s", "while all wait"], rows


def evenness(fairness: Mapping[str, Any]) -> str:
    """Tell how even the service of tenants was, and what service is; the index weighs it."""
    index, of = fairness["jain_index"], " / weight" if _weighted(fairness) else ""
    told = f"Jain's index {number(index)} (1: even) of service{of} in the"
    told += f" {number(fairness['backlogged_s'])} s in which all wait at the same replica"
    if index is None:
        told = "all hardly ever wait at the same replica, so there is nothing to be fair about"
    rest = fairness["number"] - len(fairness["tenants"])
    more = f"; {counted(rest, 'more tenant')}" if rest else ""
    return f"{told}{more}; service: input + 2 x output tokens"


def _weighted(fairness: Mapping[str, Any]) -> bool:
    return len({row["weight"] for row in fairness["tenants"].values()}) > 1
