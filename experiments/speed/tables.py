"""The figures as Markdown tables, ready for a README."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from experiments.speed.sample import Series


def cases(measured: Mapping[str, Series]) -> str:
    """Return one row per case: speed, what a request takes, memory."""
    header = (
        "case", "requests", "requests/CPU-s, median", "best", "million tokens/CPU-s",
        "events/request", "steps/request", "preemptions/request", "peak MB",
    )  # fmt: skip
    return _table(header, (_case(name, series) for name, series in measured.items()))


def _case(name: str, series: Series) -> list[str]:
    run = series.run
    return [
        name,
        f"{run.requests:,}",
        f"{series.median:,.0f}",
        f"{series.best:,.0f}",
        f"{run.tokens / series.median_s / 1e6:,.0f}",
        f"{series.per_request(run.events):.2f}",
        f"{series.per_request(run.steps):.2f}",
        f"{series.per_request(run.preemptions):.2f}",
        _megabytes(series.peak_bytes),
    ]


def sizes(measured: Sequence[Series]) -> str:
    """Return one row per size of the run from the command line; the first size is a single request."""
    header = (
        "requests", "requests/CPU-s, median", "best", "us per further request, median",
        "CPU s of the command", "peak MB", "files MB",
    )  # fmt: skip
    return _table(header, (_size(series, measured[0].median_s) for series in measured))


def _size(series: Series, fixed_s: float) -> list[str]:
    further = series.run.requests - 1
    return [
        f"{series.run.requests:,}",
        f"{series.median:,.0f}",
        f"{series.best:,.0f}",
        f"{1e6 * (series.median_s - fixed_s) / further:.1f}" if further else "",
        f"{series.command_s:.1f}",
        _megabytes(series.peak_bytes),
        _megabytes(series.run.file_bytes),
    ]


def comparison(name: str, series: Series, other_name: str, other: Series) -> str:
    """Return one row per simulator, and how many times as fast the first one is."""
    header = (
        "simulator", "requests", "requests/CPU-s, median", "best",
        "steps/request", "sequences/step", "peak MB",
    )  # fmt: skip
    table = _table(header, [_simulator(name, series), _simulator(other_name, other)])
    medians, bests = series.median / other.median, series.best / other.best
    return f"{table}\n\n{name} is {medians:.1f} times as fast by the medians, {bests:.1f} by the best runs."


def _simulator(name: str, series: Series) -> list[str]:
    run = series.run
    return [
        name,
        f"{run.requests:,}",
        f"{series.median:,.0f}",
        f"{series.best:,.0f}",
        f"{series.per_request(run.steps):.2f}",
        f"{run.sequences:.1f}",
        _megabytes(series.peak_bytes),
    ]


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f}"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose first column is text and whose others are numbers."""
    cells = [list(header), *(list(row) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = [
        " | ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    ]
    rule = " | ".join(["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])])
    return "\n".join(f"| {line} |" for line in [lines[0], rule, *lines[1:]])
