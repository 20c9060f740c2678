"""Scores: how far simulated figures are from measured ones, with and without what an engine adds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd

from servesim.report.page import Page

#: Overrides that leave an engine nothing but its kernels: no term that was fitted on any run.
KERNELS_ALONE = (
    "engine_overhead.step_s=0",
    "engine_overhead.sequence_s=0",
    "engine_overhead.prefill_factor=1",
)


class Errors(NamedTuple):
    """Relative errors, simulated / measured - 1: the mean of their size, their mean, and of how many."""

    size: float
    bias: float
    n: int

    @classmethod
    def of(cls, simulated: Iterable[float], measured: Iterable[float]) -> Errors:
        """Return the errors of the pairs of which both are known."""
        pairs = np.array([list(simulated), list(measured)], dtype=float)
        pairs = pairs[:, ~np.isnan(pairs).any(axis=0)]
        errors = pairs[0] / pairs[1] - 1
        return cls(float(np.abs(errors).mean()), float(errors.mean()), len(errors))

    def __str__(self) -> str:
        """Return the error of one figure with its sign; of several the size and the mean, in percent."""
        if self.n == 1:
            return f"{100 * self.bias:+.1f}%"
        return f"{100 * self.size:.1f}% ({100 * self.bias:+.1f}%)"


class Score(NamedTuple):
    """One row of the answer.

    Attributes:
        runs: which measured runs.
        figure: what of them was compared.
        kernels: the errors where nothing was fitted on any run; None where that says nothing.
        errors: the errors with the terms of the engine.
        terms: which those are, and what they were fitted on.
        bound: the largest size of error that is thought good (a fraction); None: shown, not judged.

    """

    runs: str
    figure: str
    kernels: Errors | None
    errors: Errors
    terms: str
    bound: float | None = None

    @property
    def verdict(self) -> str:
        """Return whether the bound is kept, in a word or two."""
        if self.bound is None:
            return ""
        kept = self.errors.size <= self.bound
        return f"{'within' if kept else 'NOT within'} {100 * self.bound:g}%"


@dataclass(frozen=True)
class Part:
    """What one set of measured runs says: its name, its scores, the tables of all rows, and pages."""

    name: str
    scores: Sequence[Score]
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    pages: dict[str, Page] = field(default_factory=dict)


def headline(parts: Iterable[Part]) -> Iterator[str]:
    """Yield the rows of the table of all scores."""
    yield "| measured runs | figure | n | kernels alone | with the engine's terms | | terms |"
    yield "|---|---|--:|--:|--:|---|---|"
    for part in parts:
        for score in part.scores:
            kernels = "" if score.kernels is None else str(score.kernels)
            cells = (
                score.runs,
                score.figure,
                str(score.errors.n),
                kernels,
                str(score.errors),
                score.verdict,
                score.terms,
            )
            yield f"| {' | '.join(cells)} |"
