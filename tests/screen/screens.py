"""Screens of small runs."""

import io
from functools import cache
from typing import Any

from rich.console import Console

from servesim import load, run
from servesim.screen.summary import print_summary

DISAGGREGATED = ("scheduler=disaggregated", "cluster.prefill.gpu=h200-sxm", "cluster.decode.replicas=2")


@cache
def summary_of(*overrides: str) -> dict[str, Any]:
    return run(load("workload.requests=30", *overrides)).summary


def printed_from(summary: dict[str, Any], **more: Any) -> str:
    out = Console(file=io.StringIO(), width=100)
    print_summary(summary, out, **more)
    return out.file.getvalue()  # type: ignore[attr-defined]


def screen(*overrides: str, **more: Any) -> str:
    return printed_from(summary_of(*overrides), **more)


def unwrapped(printed: str) -> str:
    return " ".join(printed.split())


def row(printed: str, label: str) -> list[str]:
    (line,) = [line for line in printed.splitlines() if label in line]
    return line.partition(label)[2].split()
