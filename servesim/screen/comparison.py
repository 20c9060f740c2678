"""The table that compares several runs."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from servesim.screen.figures import money, number, percent
from servesim.screen.hardware import gpus, usd_per_hour
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
_NO_FIGURES = [*("-" for _ in _HEADINGS[2:]), "error"]


def print_comparison(runs: Sequence[Run], out: Console, files: str = "") -> None:
    """Print what sets each run apart, then a table with one row for each.

    Args:
        runs: of each its number, the overrides that not all have, and its summary (None: it could not run).
        out: where to print.
        files: where the files of the runs are.

    """
    lines = [line for name, own, _ in runs for line in _legend(name, own, out.width)]
    apart = _apart([summary for _, _, summary in runs])
    headings = [_HEADINGS[0], *(("", "", heading) for heading in apart), *_HEADINGS[1:]]
    rows = [
        [name, *(cells[index] for cells in apart.values()), *(_figures(summary) if summary else _NO_FIGURES)]
        for index, (name, _, summary) in enumerate(runs)
    ]
    words = {*range(1 + len(apart)), len(headings) - 1}  # columns to be set from the left
    same = {formats(summary["scenario"]) for _, _, summary in runs if summary}
    lines += [f"All have {text}" for text in same if len(same) == 1]
    notes = [note for _, _, summary in runs if summary for note in summary["scenario"].get("notes", ())]
    lines += dict.fromkeys(notes)
    lines += ["", *table_lines([*map(list, zip(*headings, strict=True)), *rows], words, out.width)]
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


def _legend(name: str, own: Sequence[str], width: int) -> Iterator[str]:
    """Yield the number of a run and its overrides, on further lines what does not fit; none is split."""
    line = f"{name} "
    for text in own or ["as it is"]:
        if line.strip() not in ("", name) and len(line) + len(text) >= width:
            yield line
            line = " " * (len(name) + 1)
        line += f" {text}"
    yield line


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
