"""What the screen of a run and its page both say of groups of requests: classes and tenants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from servesim.screen.figures import counted, number, percent, scale_of

Rows = list[list[str]]
Groups = Mapping[str, Mapping[str, Any]]


class _Ends(NamedTuple):
    """The columns that tell what became of groups of requests; ends that nobody met have none."""

    headings: list[str]
    keys: list[str]
    judged: bool

    @classmethod
    def of(cls, groups: Groups) -> _Ends:
        keys = ["requests", "completed"]
        keys += [key for key in ("dropped", "timed_out") if any(row[key] for row in groups.values())]
        judged = any(row["attainment"] is not None for row in groups.values())
        words = {"requests": "sent", "timed_out": "timed\nout"}
        return cls([*(words.get(key, key) for key in keys), *(["good"] if judged else [])], keys, judged)

    def cells(self, row: Mapping[str, Any]) -> list[str]:
        good = [percent(row["attainment"])] if self.judged else []
        return [*(f"{row[key]:,}" for key in self.keys), *good]


class _Times(NamedTuple):
    """The columns of a latency of groups, in seconds where milliseconds are too long to read."""

    name: str
    statistics: tuple[str, ...]
    scale: float

    @classmethod
    def of(cls, name: str, statistics: tuple[str, ...], groups: Groups) -> _Times:
        told_s = [row[name]["p99"] for row in groups.values()]
        return cls(name, statistics, 1.0 if name == "e2e_s" else scale_of(*told_s))

    @property
    def headings(self) -> list[str]:
        unit = "s" if self.scale == 1 else "ms"
        first = f"{self.name.removesuffix('_s').upper()} ({unit})\n{self.statistics[0]}"
        return [first, *self.statistics[1:]]

    def cells(self, row: Mapping[str, Any]) -> list[str]:
        return [number(row[self.name][key], self.scale) for key in self.statistics]


def class_rows(classes: Groups) -> tuple[list[str], Rows]:
    """Return headings and rows: what became of each class, the best first."""
    columns = [_Ends.of(classes), *(_Times.of(name, ("p50", "p99"), classes) for name in ("ttft_s", "e2e_s"))]
    return _table("priority", columns, classes)


def tenant_rows(fairness: Mapping[str, Any]) -> tuple[list[str], Rows]:
    """Return headings and rows: what became of each tenant's requests."""
    tenants = fairness["tenants"]
    times = _Times.of("ttft_s", ("mean", "p50", "p99"), tenants)
    return _table("", [_Ends.of(tenants), times], tenants)


def service_rows(fairness: Mapping[str, Any]) -> tuple[list[str], Rows]:
    """Return headings and rows: what each tenant was served, and its weight where these differ."""
    weighted, rows = _weighted(fairness), []
    for name, row in fairness["tenants"].items():
        rates = (number(row[key]) for key in ("service_per_s", "backlogged_service_per_s"))
        rows.append([name, *([f"{row['weight']:g}"] if weighted else []), *rates])
    rates_of = ["service/s\nof the cluster", "service/s of a replica\nwhile all wait there"]
    return ["", *(["weight"] if weighted else []), *rates_of], rows


def evenness(fairness: Mapping[str, Any]) -> str:
    """Tell how even the service of tenants was, and what service is; the index weighs it."""
    index, of = fairness["jain_index"], " / weight" if _weighted(fairness) else ""
    told = f"Jain's index {number(index)} (1: even) of service{of} in the"
    told += f" {number(fairness['backlogged_s'])} replica-seconds in which all wait at the same replica"
    if index is None:
        told = "all hardly ever wait at the same replica, so there is nothing to be fair about"
    rest = fairness["number"] - len(fairness["tenants"])
    more = f"; {counted(rest, 'more tenant')}" if rest else ""
    lost = any(row["completed"] < row["requests"] - row["dropped"] for row in fairness["tenants"].values())
    wasted = ", of requests that never completed, too" if lost else ""
    return f"{told}{more}; service: input + 2 x output tokens{wasted}"


def _table(heading: str, columns: list[Any], groups: Groups) -> tuple[list[str], Rows]:
    headings = [heading, *(each for column in columns for each in column.headings)]
    rows = [[name, *(cell for part in columns for cell in part.cells(row))] for name, row in groups.items()]
    return headings, rows


def _weighted(fairness: Mapping[str, Any]) -> bool:
    return len({row["weight"] for row in fairness["tenants"].values()}) > 1
