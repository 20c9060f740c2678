"""The screen that describes a trace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from servesim.screen.console import print_lines
from servesim.screen.figures import counted, number, rounded_percent
from servesim.workload.batch import FloatArray
from servesim.workload.description import SHARES, Description, Lengths
from servesim.workload.notes import YEAR_S

_HEADINGS_WIDTH = len("Requests") + 4  # with what is between it and its content
_BARS = " ▁▂▃▄▅▆▇█"


def print_trace(name: str, description: Description, out: Console, page: Path | None = None) -> None:
    """Print what a trace is like, and where its page is, if there is one."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column()
    for heading, content in _sections(description, page, out):
        grid.add_row(heading, Text(content) if isinstance(content, str) else content)
    print_lines(
        out, Text(f"{name}: a trace of {counted(description.recording.size, 'request')}", style="bold"), grid
    )


def _sections(
    description: Description, page: Path | None, out: Console
) -> Iterator[tuple[str, RenderableType]]:
    """Yield a heading and its content, in the order of reading."""
    yield "Requests", requests_in_words(description)
    if description.recording.timed:
        yield "Times", times_in_words(description)
        if bars := _bars(description):
            yield "", bars
    yield "Lengths", _lengths(description, out)
    if description.reuse is not None:
        yield "Prefixes", reuse_in_words(description)
    yield "Notes", "\n".join(notes(description)) or "none"
    if page is not None:
        yield "Page", str(page)


def requests_in_words(description: Description) -> str:
    """Tell how many requests there are, and how much they ask for."""
    inputs, outputs = description.inputs, description.outputs
    means = f"{number(inputs.mean)} tokens in and {number(outputs.mean)} out on average"
    totals = f"{number(inputs.total)} and {number(outputs.total)} in all"
    return f"{description.recording.size:,}, with {means}, {totals}"


def times_in_words(description: Description) -> str:
    """Tell how long the trace is, how dense, and how bursty."""
    if description.rate_rps is None:
        return "all at once"
    rates = f"{number(description.rate_rps)}/s, at most {number(description.peak_rps)}/s"
    burstiness = f"squared coefficient of variation of the gaps {number(description.gap_scv)} (Poisson: 1)"
    span = f"{duration(description.span_s)}{_date(description)}"
    return f"{span} at {rates} over {duration(description.bin_s)}; {burstiness}"


def reuse_in_words(description: Description) -> str:
    """Tell what prompts share."""
    reuse = description.reuse
    if reuse is None:
        return "no blocks of prompts in the file"
    blocks = f"{counted(int(reuse.blocks.sum()), 'block')} of {reuse.block_tokens} tokens"
    tokens = rounded_percent(float(reuse.tokens.sum() / description.inputs.total))
    found = f"{rounded_percent(reuse.share)} of {blocks} were in an earlier prompt"
    return f"{found} ({tokens} of the prompts' tokens): what an endless cache would find"


def notes(description: Description) -> Iterator[str]:
    """Yield how the file was read, and what is odd about it."""
    recording = description.recording
    yield from recording.remarks
    yield from (f"left out, {why}: {count:,}" for why, count in recording.left_out)
    if recording.unread:
        yield f"not read: {', '.join(recording.unread)}"
    if not recording.timed:
        yield "no times in the file"
    counts = {
        "rows out of order": description.out_of_order,
        "requests at the same time as the one before": description.same_time if recording.timed else 0,
        "requests with 0 output tokens": int((recording.output_tokens == 0).sum()),
    }
    yield from (f"{what}: {count:,}" for what, count in counts.items() if count)


def _date(description: Description) -> str:
    """Return when a trace begins, where its times are dates."""
    first_ns = int(description.recording.time_ns[0])
    if first_ns < YEAR_S * 10**9:
        return ""
    return f" from {str(np.datetime64(first_ns, 'ns'))[:19].replace('T', ' ')} on"


def duration(seconds: float) -> str:
    """Return a time as a reader would say it: 0.5 s, 58 min, 2.5 h, 7 days."""
    for size, word, most in ((1.0, "s", 120.0), (60.0, "min", 7200.0), (3600.0, "h", 172_800.0)):
        if seconds < most:
            return f"{number(seconds, 1 / size)} {word}"
    return f"{number(seconds, 1 / 86_400)} days"


def length_rows(description: Description) -> list[list[str]]:
    """Return the rows of the table of lengths, one for the prompts and one for the outputs."""
    return [
        _length_row("tokens in", description.inputs),
        _length_row("tokens out", description.outputs),
    ]


def length_headings() -> list[str]:
    """Return the headings of the table of lengths."""
    return ["", "mean", "least", *(f"p{share * 100:g}" for share in SHARES), "most"]


def _length_row(name: str, lengths: Lengths) -> list[str]:
    least, most = lengths.ends
    values = [lengths.mean, least, *lengths.quantiles.values(), most]
    return [name, *map(number, values)]


def _lengths(description: Description, out: Console) -> Table:
    """Return the table of lengths, on its side where the screen is too narrow for it."""
    rows = [length_headings(), *length_rows(description)]
    table = _table(rows)
    if out.measure(table).maximum <= out.width - _HEADINGS_WIDTH:
        return table
    return _table([list(column) for column in zip(*rows, strict=True)])


def _table(rows: list[list[str]]) -> Table:
    """Return a table with the first row as its headings; what has no room goes on below, and is not cut."""
    table = Table(box=None, padding=(0, 1), pad_edge=False)
    for column, heading in enumerate(rows[0]):
        table.add_column(
            heading, justify="right" if column else "left", header_style="", overflow="fold", min_width=1
        )
    for row in rows[1:]:
        table.add_row(*row)
    return table


def _bars(description: Description) -> str:
    """Return the rate over time as a row of bars."""
    rates = description.rates_rps
    if len(rates) < 2:
        return ""
    stretches = [part.mean() for part in _parts(rates)]
    highest = max(stretches)
    return "".join(_BARS[round(level / highest * (len(_BARS) - 1))] for level in stretches)


def _parts(rates: FloatArray) -> Iterator[FloatArray]:
    """Yield stretches of equal length, as many as a row has room for; the last may be shorter."""
    width = -(-len(rates) // 60)
    for start in range(0, len(rates), width):
        yield rates[start : start + width]
