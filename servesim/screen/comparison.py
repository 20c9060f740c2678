"""The table that compares several runs."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from rich.console import Console
from rich.text import Text

from servesim.screen.figures import money, number, percent, rounded_percent
from servesim.screen.hardware import gpus, usd_per_hour
from servesim.screen.idle import idle
from servesim.screen.remarks import remarks
from servesim.screen.reuse import prefill_saved
from servesim.screen.words import formats

Run = tuple[str, Sequence[str], Mapping[str, Any] | None]

_HEADINGS = (
    ("", "", "#"),
    ("", "TTFT", "p50"),
    ("", "ms", "p99"),
    ("", "TPOT", "p50"),
    ("", "ms", "p99"),
    ("output", "tok/s", "per GPU"),
    ("", "SLO", "met by"),
    ("$ per", "M out", "tok"),
    ("", "", "GPUs"),
    ("", "", "$/h"),
    ("", "", "outcome"),
)
#: So many tenants have columns of their own, headed by so many letters of their names.
_FEW_TENANTS, _NAME = 3, 10

_NO_FIGURES = [*("-" for _ in _HEADINGS[2:]), "error"]


def print_comparison(
    runs: Sequence[Run], out: Console, files: str = "", errors: Mapping[str, str] | None = None
) -> None:
    """Print what sets each run apart, a table with one row for each, then what there is to say of them.

    Args:
        runs: of each its number, the overrides that not all have, and its summary (None: it could not run).
        out: where to print.
        files: where the files of the runs are.
        errors: why runs could not run, by their number.

    """
    lines = [line for name, own, _ in runs for line in _legend(name, own, out.width)]
    apart = _apart([summary for _, _, summary in runs])
    headings = [_HEADINGS[0], *(("", "", heading) for heading in apart), *_HEADINGS[1:]]
    beyond = _beyond([summary for _, _, summary in runs])
    headings[-1:-1] = beyond
    rows = []
    for index, (name, _, summary) in enumerate(runs):
        figures = _figures(summary) if summary else [*_NO_FIGURES]
        figures[-1:-1] = [cells[index] for cells in beyond.values()]
        rows.append([name, *(cells[index] for cells in apart.values()), *figures])
    same = {formats(summary["scenario"]) for _, _, summary in runs if summary}
    lines += [f"All have {text}" for text in same if len(same) == 1]
    scenarios = [summary["scenario"] for _, _, summary in runs if summary]
    notes = [note for scenario in scenarios for note in scenario.get("notes", ())]
    lines += dict.fromkeys([*notes, *idle(scenarios)])
    table = [*map(list, zip(*headings, strict=True)), *rows]
    lines += _without_the_bill(table, headings, out.width)
    words = {*range(1 + len(apart)), len(table[0]) - 1}  # columns to be set from the left
    lines += ["", *table_lines(table, words, out.width)]
    reasons = errors or {}
    found = {name: summary or reasons[name] for name, _, summary in runs if summary or name in reasons}
    if told := [*remarks(found)]:
        lines += ["", *told]
    if files:
        lines += ["", f"Files: {files}"]
    out.print(Text("\n".join(line.rstrip() for line in lines)), soft_wrap=True)


def _apart(summaries: Sequence[Mapping[str, Any] | None]) -> dict[str, list[str]]:
    """Return a cell per run, by heading, of what may differ without having been typed: weights and GPU."""
    cells = {
        "weights": [one["scenario"]["model"]["weights_dtype"] if one else "-" for one in summaries],
        "GPU": ["+".join(gpus(one["scenario"])) if one else "-" for one in summaries],
    }
    return {heading: each for heading, each in cells.items() if len({*each} - {"-"}) > 1}


def _beyond(summaries: Sequence[Mapping[str, Any] | None]) -> dict[tuple[str, str, str], list[str]]:
    """Return a cell per run, by heading, of the figures that only some traffic and some servers have."""
    there = [one for one in summaries if one]
    columns: dict[tuple[str, str, str], Callable[[Mapping[str, Any]], str]] = {}
    if any(prefill_saved(one) for one in there):
        columns["", "prefill", "saved"] = lambda one: rounded_percent(prefill_saved(one))
    if any(_loses(one["accounting"]) for one in there):
        columns["", "", "served"] = lambda one: percent(one["accounting"]["success"])
    if any(one["accounting"]["retries"] for one in there):
        columns["", "", "retries"] = lambda one: f"{one['accounting']['retries']:,}"
    if any(one.get("speculation") for one in there):
        columns["tokens", "per", "step"] = lambda one: number(
            one["speculation"]["mean_accepted_length"] if one.get("speculation") else 1.0
        )
    columns |= _of_tenants(there)
    return {heading: [tell(one) if one else "-" for one in summaries] for heading, tell in columns.items()}


def _loses(accounting: Mapping[str, Any]) -> bool:
    """Say whether requests timed out or were turned away."""
    return bool(accounting["timed_out"] or {"queue_full", "slo"} & accounting["dropped"].keys())


def _of_tenants(
    there: Sequence[Mapping[str, Any]],
) -> dict[tuple[str, str, str], Callable[[Mapping[str, Any]], str]]:
    """Return what tells each of a few tenants, and of many how evenly they were served."""
    names = {name: None for one in there for name in one.get("fairness", {}).get("tenants", ())}
    if len(names) > _FEW_TENANTS:
        return {("", "Jain's", "index"): lambda one: number(one.get("fairness", {}).get("jain_index"))}

    def p99(name: str, one: Mapping[str, Any]) -> str:
        tenant = one.get("fairness", {}).get("tenants", {}).get(name)
        return number(tenant["ttft_s"]["p99"], 1e3) if tenant else "-"

    return {("TTFT", "p99 ms", name[:_NAME]): partial(p99, name) for name in names}


def _legend(name: str, own: Sequence[str], width: int) -> Iterator[str]:
    """Yield the number of a run and its overrides, on further lines what does not fit; none is split."""
    line = f"{name} "
    for text in own or ["as it is"]:
        if line.strip() not in ("", name) and len(line) + len(text) >= width:
            yield line
            line = " " * (len(name) + 1)
        line += f" {text}"
    yield line


def _without_the_bill(
    table: Sequence[list[str]], headings: Sequence[tuple[str, str, str]], width: int
) -> Iterator[str]:
    """Take GPUs and $/h out of a table that is too wide where all runs have the same, and say so once."""
    first = headings.index(("", "", "GPUs"))
    bills = {tuple(row[first : first + 2]) for row in table[3:]} - {("-", "-")}
    if sum(max(map(len, column)) + 1 for column in zip(*table, strict=True)) - 1 <= width or len(bills) != 1:
        return
    for row in table:
        del row[first : first + 2]
    yield "All have {} GPUs at ${} per hour".format(*bills.pop())


def table_lines(rows: Sequence[Sequence[str]], words: Container[int], width: int) -> Iterator[str]:
    """Yield the lines of a table, its columns two blanks apart, or one where the width asks for it.

    ``words`` are the numbers of the columns that are set from the left.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    wide = sum(widths) + 2 * (len(widths) - 1) <= width
    for row in rows:
        cells = (
            text.ljust(size) if index in words else text.rjust(size)
            for index, (text, size) in enumerate(zip(row, widths, strict=True))
        )
        yield ("  " if wide else " ").join(cells)


def _figures(summary: Mapping[str, Any]) -> list[str]:
    latency, scenario = summary["latency"], summary["scenario"]
    return [
        *(number(latency[name][p], 1e3) for name in ("ttft_s", "tpot_s") for p in ("p50", "p99")),
        number(summary["throughput"]["output_tokens_per_s_per_gpu"]),
        percent(summary["goodput"]["attainment"]),
        money(summary["cost"]["usd_per_million_output_tokens"]),
        f"{sum(gpus(scenario).values()):,}",
        money(usd_per_hour(scenario)),
        _outcome(summary),
    ]


def _outcome(summary: Mapping[str, Any]) -> str:
    """Return whether the SLO was met, where there is one, and what else is not as it should be."""
    met = {True: "met", False: "MISSED", None: ""}[summary["goodput"]["met"]]
    state = "saturated" if summary["saturated"] else "unsettled" if summary["settled"] is False else ""
    if not summary["accounting"]["clean"]:
        state = "NOT CLEAN"
    return ", ".join(filter(None, (met, state))) or "clean"
