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
from servesim.workload.description import SHARES, Description, Lengths, Talks
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
    if description.talks is not None:
        yield "Sessions", sessions_in_words(description.talks)
    if description.recording.timed:
        yield "Times", times_in_words(description)
        if bars := _bars(description):
            yield "", bars
    yield "Lengths", _lengths(description, out)
    if has_prefixes(description):
        yield "Prefixes", reuse_in_words(description)
    yield "Notes", "\n".join(notes(description)) or "none"
    if page is not None:
        yield "Page", str(page)


def requests_in_words(description: Description) -> str:
    """Tell how many requests there are, and how much they ask for."""
    inputs, outputs, talks = description.inputs, description.outputs, description.talks
    new = (
        "" if talks is None or talks.new_inputs is None else f" ({number(talks.new_inputs.mean)} of them new)"
    )
    means = f"{number(inputs.mean)} tokens in{new} and {number(outputs.mean)} out on average"
    totals = f"{number(inputs.total)} and {number(outputs.total)} in all"
    return f"{description.recording.size:,}, with {means}, {totals}"


def sessions_in_words(talks: Talks) -> str:
    """Tell how many sessions there are, of how many turns, and how long a turn waits."""
    turns, pauses_s = talks.turns, talks.pauses_s
    counts = f"{talks.sessions:,} of {number(float(turns.mean()))} turns on average"
    ends = f"{turns.min():,} to {turns.max():,}"
    mean_s, most_s = float(pauses_s.mean()), float(pauses_s.max())
    waits = f"{duration(mean_s)} on average after the answer before it, at most {duration(most_s)}"
    return f"{counts} ({ends}); a later one is sent {waits}"


def times_in_words(description: Description) -> str:
    """Tell how long the trace is, how dense, and how bursty."""
    if description.rate_rps is None:
        return "all at once"
    what = " sessions" if description.of_sessions else ""
    rates = f"{number(description.rate_rps)}{what}/s, at most {number(description.peak_rps)}/s"
    burstiness = f"squared coefficient of variation of the gaps {number(description.gap_scv)} (Poisson: 1)"
    span = f"{duration(description.span_s)}{_date(description)}"
    later = "; later turns come when answers do" if description.of_sessions else ""
    return f"{span} at {rates} over {duration(description.bin_s)}; {burstiness}{later}"


def has_prefixes(description: Description) -> bool:
    """Tell whether anything is known of what prompts share."""
    talks = description.talks
    return description.reuse is not None or (talks is not None and talks.new_inputs is not None)


def reuse_in_words(description: Description) -> str:
    """Tell what prompts share."""
    return "; ".join(_shares(description)) or "no blocks of prompts in the file"


def _shares(description: Description) -> Iterator[str]:
    """Yield what turns find of what was said before them, and what prompts find of the blocks of others."""
    talks, reuse = description.talks, description.reuse
    told = description.inputs.total
    if talks is not None and talks.new_inputs is not None:
        said = told - talks.new_inputs.total
        yield f"{rounded_percent(said / told)} of the prompts' tokens were said before in their session"
        told = talks.new_inputs.total
    if reuse is not None:
        new = "new " if told != description.inputs.total else ""
        blocks = f"{counted(int(reuse.blocks.sum()), 'block')} of {reuse.block_tokens} tokens"
        tokens = rounded_percent(float(reuse.tokens.sum() / told))
        found = f"{rounded_percent(reuse.share)} of {blocks} were in an earlier prompt"
        yield f"{found} ({tokens} of the prompts' {new}tokens): what an endless cache would find"


def notes(description: Description) -> Iterator[str]:
    """Yield how the file was read, and what is odd about it."""
    recording = description.recording
    yield from recording.remarks
    yield from (f"left out, {why}: {count:,}" for why, count in recording.left_out)
    if recording.unread:
        yield f"not read: {', '.join(recording.unread)}"
    if not recording.timed:
        yield "no times in the file"
    one = "session" if description.of_sessions else "request"
    counts = {
        "rows out of order": description.out_of_order,
        f"{one}s at the same time as the one before": description.same_time if recording.timed else 0,
        "requests with 0 output tokens": int((recording.output_tokens == 0).sum()),
    }
    yield from (f"{what}: {count:,}" for what, count in counts.items() if count)


def _date(description: Description) -> str:
    """Return when a trace begins, where its times are dates."""
    first_ns = int(description.times_ns[0])
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
    """Return the rows of the table of lengths: prompts, what is new in those of turns, and outputs."""
    talks = description.talks
    new = [] if talks is None or talks.new_inputs is None else [_length_row("new of them", talks.new_inputs)]
    return [
        _length_row("tokens in", description.inputs),
        *new,
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
