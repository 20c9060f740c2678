"""Lengths as they were measured: a table of quantiles and a correlation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np

from servesim.check import Problem, quantity
from servesim.workload.batch import FloatArray, IntArray
from servesim.workload.lengths import MOST_TOKENS, whole_tokens
from servesim.workload.normal import normal_cdf
from servesim.workload.table import Table, row_problems


@dataclass(frozen=True)
class Quantiles:
    """Lengths that follow a quantile table, input and output correlated by rank.

    ``table`` holds rows ``(share, input tokens, output tokens)``: that share of the requests is not longer.
    Between two rows a length is linear in the share. Input and output are joined by a Gaussian copula, whose
    normals have the correlation 2 sin(pi s/6) for a rank correlation (Spearman) of s (Kruskal, Ordinal
    measures of association, JASA 53, 1958).
    """

    table: Table
    rank_correlation: float = quantity("Spearman", at_least=-1, at_most=1, default=0.0)

    hints: ClassVar[Mapping[str, str]] = {
        "input": "the lengths are a measured table; choose workload/lengths=lognormal to set their means",
        "output": "the lengths are a measured table; choose workload/lengths=lognormal to set their means",
    }

    @property
    def mean(self) -> tuple[float, float]:
        """Return the mean lengths, those of the piecewise linear quantile functions (tokens)."""
        share, *columns = self._columns
        mean_in, mean_out = (float(np.diff(share) @ (q[1:] + q[:-1])) / 2 for q in columns)
        return mean_in, mean_out

    @property
    def variance(self) -> tuple[float, float]:
        """Return the variances of the lengths (tokens squared)."""
        share, *columns = self._columns
        square_in, square_out = (
            float(np.diff(share) @ (q[1:] ** 2 + q[1:] * q[:-1] + q[:-1] ** 2)) / 3 for q in columns
        )
        mean_in, mean_out = self.mean
        return square_in - mean_in**2, square_out - mean_out**2

    def tokens(self, normals: FloatArray) -> tuple[IntArray, IntArray]:
        """Return one pair of lengths per row of ``normals``."""
        share, input_tokens, output_tokens = self._columns
        correlation = 2 * math.sin(math.pi * self.rank_correlation / 6)
        first, own = normals[:, 0], normals[:, 1]
        second = correlation * first + math.sqrt(1 - correlation**2) * own
        return (
            whole_tokens(np.interp(normal_cdf(first), share, input_tokens)),
            whole_tokens(np.interp(normal_cdf(second), share, output_tokens)),
        )

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong with the table, row by row."""
        yield from self._wrong

    @cached_property
    def _wrong(self) -> list[Problem]:
        """What is wrong with the table, which is too long to be looked through twice."""
        columns = "share of the requests, input (tokens), output (tokens)"
        malformed = list(row_problems("table", self.table, columns, most=[1, MOST_TOKENS, MOST_TOKENS]))
        return malformed or list(self._order_problems())

    def _order_problems(self) -> Iterator[Problem]:
        last = len(self.table) - 1
        if self.table[0][0] != 0 or min(self.table[0][1:]) < 1:
            yield Problem(
                "table[0]", self.table[0], "must have a share of 0 and lengths of at least 1 (tokens)"
            )
        if self.table[last][0] != 1:
            yield Problem(f"table[{last}]", self.table[last], "the last share must be 1")
        for index, (before, row) in enumerate(pairwise(self.table), start=1):
            if row[0] <= before[0] or row[1] < before[1] or row[2] < before[2]:
                message = "must have a larger share than the row before it, and no shorter lengths"
                yield Problem(f"table[{index}]", row, message)

    @cached_property
    def _columns(self) -> FloatArray:
        return np.array(self.table, dtype=np.float64).T
