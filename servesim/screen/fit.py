"""What is printed of fitted terms."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from servesim.check import listed
from servesim.screen.console import print_lines
from servesim.screen.errors import share, signed_percent, title_of
from servesim.screen.figures import counted
from servesim.validate.closed_loop import Scores
from servesim.validate.fit import TERMS
from servesim.validate.terms import FittedTerms

#: How a term is shown: its unit, and what it is multiplied with for that.
_UNITS = {"step_s": ("ms", 1e3), "sequence_s": ("us", 1e6), "prefill_factor": ("", 1.0)}


def print_fit(found: FittedTerms, source: str, split: str, files: str, out: Console) -> None:
    """Print the terms with their intervals, the errors with them, and what the runs cannot tell."""
    doubts = "\n".join(found.fit.doubts()) or "the runs tell all terms apart"
    parts: list[tuple[str, RenderableType | str]] = [
        ("Fitted to", f"{counted(found.fitted.n, 'run')} of {source}; {split}"),
        ("Terms", _terms(found)),
        ("Errors", _errors(found)),
        ("Doubts", doubts),
        ("Files", files),
    ]
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column()
    for heading, content in parts:
        grid.add_row(heading, Text(content) if isinstance(content, str) else content)
    print_lines(out, grid)


def _terms(found: FittedTerms) -> Table:
    table = _table("", "", "from", "fitted", "95% interval")
    for name, term in found.fit.terms.items():
        unit, scale = _UNITS[name]
        before = scale * getattr(found.runs.overhead, name)
        ends = f"[{scale * term.low:.4g}, {scale * term.high:.4g}]"
        value = f"{scale * term.value:.4g} {unit}".rstrip()
        table.add_row(name, TERMS[name].about, f"{before:.4g}", value, ends)
    return table


def _errors(found: FittedTerms) -> Table:
    table = _table(
        listed((title_of(each).partition(" (")[0] for each in found.runs.figures), "or"),
        "n",
        "MAPE",
        "MdAPE",
        "bias",
    )
    for name, scores in _scores(found):
        if scores.n:
            row = (share(scores.mape), share(scores.mdape), signed_percent(scores.bias))
            table.add_row(name, f"{scores.n:,}", *row)
    return table


def _scores(found: FittedTerms) -> Iterator[tuple[str, Scores]]:
    yield "fitted", found.fitted
    yield "held out", found.held_out
    yield f"held out, with {found.runs.overhead.name}", found.held_out_before
    yield "held out, kernels alone", found.held_out_kernels_alone


def _table(*headings: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="", show_edge=False)
    for index, heading in enumerate(headings):
        table.add_column(heading, justify="right" if index > 1 else "left", no_wrap=True)
    return table
