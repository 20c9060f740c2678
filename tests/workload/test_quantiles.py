"""Quantile tables: the marginals are the table's, the rank correlation is the one asked for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim.check import ConfigError, check
from servesim.streams import Streams
from servesim.workload.normal import normal_cdf
from servesim.workload.quantiles import Quantiles
from tests.workload.theory import SAMPLES, SIGMAS, rank_correlation

FLAT = [[0, 1, 1], [1, 10**6, 10**6]]


@st.composite
def tables(draw: st.DrawFn) -> list[list[float]]:
    percents = draw(st.lists(st.integers(1, 99), unique=True, max_size=8))
    shares = [0.0, *(percent / 100 for percent in sorted(percents)), 1.0]
    columns = [
        sorted(draw(st.lists(st.integers(1, 5000), min_size=len(shares), max_size=len(shares)))) for _ in "io"
    ]
    return [list(row) for row in zip(shares, *columns, strict=True)]


@given(tables(), st.floats(-4, 4))
def test_that_share_of_the_requests_is_not_longer(table: list[list[float]], normal: float) -> None:
    """A request at share u of the normals has the table's length at u, to half a token."""
    share = normal_cdf(np.array([normal]))[0]
    for column, tokens in enumerate(Quantiles(table).tokens(np.full((1, 2), normal)), start=1):
        at_share = np.interp(share, [row[0] for row in table], [row[column] for row in table])
        assert abs(tokens[0] - at_share) <= 0.5 + 1e-6


@given(tables())
def test_mean_and_variance_are_those_of_the_interpolated_table(table: list[list[float]]) -> None:
    """By quadrature: the midpoints of 100,000 equal shares."""
    shares = (np.arange(10**5) + 0.5) / 10**5
    lengths = Quantiles(table)
    for column, mean, variance in zip((1, 2), lengths.mean, lengths.variance, strict=True):
        values = np.interp(shares, [row[0] for row in table], [row[column] for row in table])
        assert values.mean() == pytest.approx(mean, rel=1e-9)
        assert values.var() == pytest.approx(variance, rel=1e-6, abs=1e-3)


@pytest.mark.parametrize("asked", [-0.9, -0.3, 0.0, 0.073, 0.5, 0.95])
def test_ranks_correlate_as_asked(asked: float) -> None:
    """Within 4.5/sqrt(n): the standard error of Spearman's correlation is at most about 1/sqrt(n)."""
    tokens = Quantiles(FLAT, asked).tokens(Streams(0).stream("lengths").standard_normal((SAMPLES, 2)))
    assert abs(rank_correlation(*tokens) - asked) <= SIGMAS / math.sqrt(SAMPLES)


@pytest.mark.parametrize("asked", [-1, 1])
def test_full_correlation_leaves_no_freedom(asked: float) -> None:
    inputs, outputs = Quantiles(FLAT, asked).tokens(Streams(0).stream("lengths").standard_normal((1000, 2)))
    mirrored = outputs if asked == 1 else 10**6 + 1 - outputs
    assert np.abs(inputs - mirrored).max() <= 1


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (None, "table: must be a list of rows"),
        ("long", "table = 'long': must be a list of rows"),
        ([], r"table = \[\]: must be a list of rows"),
        ([[0, 1, 1]], r"table\[0\].*last share must be 1"),
        ([[0, 1], [1, 2, 2]], r"table\[0\] = \[0, 1\]: must be \[share"),
        ([[0, 1, 1], [1, math.nan, 2]], r"table\[1\].*\(tokens\)"),
        ([[0, 1, 1], [1, 2, math.inf]], r"table\[1\]"),
        ([[0, 0, 1], [1, 2, 2]], r"table\[0\].*at least 1 \(tokens\)"),
        ([[0.1, 1, 1], [1, 2, 2]], r"table\[0\].*share of 0"),
        ([[0, 1, 1], [0.9, 2, 2]], r"table\[1\].*share must be 1"),
        ([[0, 1, 1], [0.5, 2, 2], [0.5, 3, 3], [1, 4, 4]], r"table\[2\].*larger share"),
        ([[0, 1, 9], [1, 2, 8]], r"table\[1\].*no shorter"),
    ],
)
def test_an_impossible_table_is_refused(table: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check(Quantiles(table), "workload.lengths")


@pytest.mark.parametrize("asked", [-1.1, 2, math.nan])
def test_an_impossible_correlation_is_refused(asked: float) -> None:
    with pytest.raises(ConfigError, match=r"rank_correlation.*\(Spearman\)"):
        check(Quantiles(FLAT, asked))
