"""What is printed of fitted terms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from servesim.screen.errors import share, signed_percent, title_of
from servesim.screen.figures import counted
from servesim.screen.validation import Content, columns, print_parts, server
from servesim.validate.closed_loop import Scores
from servesim.validate.terms import FittedTerms
from servesim.words import listed

#: How a term is shown: its unit, and what it is multiplied with for that.
_UNITS = {"step_s": ("ms", 1e3), "sequence_s": ("us", 1e6), "prefill_factor": ("times", 1.0)}


def print_fit(
    found: FittedTerms, scenario: Mapping[str, Any], source: str, split: str, files: str, out: Console
) -> None:
    """Print what was simulated, terms with their intervals, errors with them, and what runs cannot tell."""
    doubts = "\n".join(found.fit.doubts()) or "the runs tell all terms apart"
    parts: list[tuple[str, Content]] = [
        *server(scenario),
        ("Fitted to", f"{counted(found.fitted.n, 'run')} of {source}; {split}"),
        ("Terms", _terms(found)),
        ("Errors", _errors(found)),
        ("Doubts", doubts),
        ("Files", files),
    ]
    print_parts(parts, out)


def _terms(found: FittedTerms) -> Table:
    table = columns("", "before", "fitted", "95% interval", "")
    for name, term in found.fit.terms.items():
        unit, scale = _UNITS[name]
        before = scale * getattr(found.runs.overhead, name)
        ends = f"[{scale * term.low:.4g}, {scale * term.high:.4g}]"
        table.add_row(name, f"{before:.4g}", f"{scale * term.value:.4g}", ends, unit)
    return table


def _errors(found: FittedTerms) -> Table:
    figures = listed((title_of(each).partition(" (")[0] for each in found.runs.figures), "or")
    table = columns(figures, "n", "MAPE", "MdAPE", "bias")
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
