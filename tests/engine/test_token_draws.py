"""Tokens per step, and steps per request, against the formula that they are drawn for."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from servesim.cost.acceptance import mean_tokens, rate_of
from servesim.engine.token_draws import STEPS, TokenDraws
from servesim.streams import Streams


def draws(*rates: float, seed: int = 0) -> TokenDraws:
    """Return the draws of a run with these rates."""
    return TokenDraws(rates, Streams(seed).stream("speculation"))


@pytest.mark.parametrize("rates", [(0.6,) * 4, (0.9, 0.5, 0.1), (0.3,), (0.8,) * 10])
def test_the_mean_is_the_formula_s(rates: tuple[float, ...]) -> None:
    """E = (1 - a^(k+1)) / (1 - a) for one rate: Leviathan et al. 2023, equation 1."""
    rate, drafted = rates[0], len(rates)
    expected = mean_tokens(rates)
    if len(set(rates)) == 1:
        assert expected == pytest.approx((1 - rate ** (drafted + 1)) / (1 - rate))
    assert draws(*rates).mean_tokens == pytest.approx(expected, rel=1e-4)
    long = draws(*rates, seed=3)
    taken = sum(long.steps(request, 20_000) for request in range(50))
    assert 50 * 20_000 / taken == pytest.approx(expected, rel=0.005)


@pytest.mark.parametrize(("tokens", "drafted"), [(1, 3), (4, 3), (2.5, 4), (1.8, 1), (6.1, 7)])
def test_the_rate_of_a_mean_is_the_formula_turned_round(tokens: float, drafted: int) -> None:
    rate = rate_of(tokens, drafted)
    assert mean_tokens((rate,) * drafted) == pytest.approx(tokens, rel=1e-12)


def test_certain_acceptance_and_certain_rejection() -> None:
    """With rate 1 each of 5 tokens is emitted in every step, with rate 0 one is."""
    all_, none = draws(1, 1, 1, 1), draws(0, 0, 0, 0)
    for request in range(100):
        assert [all_.steps(request, tokens) for tokens in (100, 101)] == [20, 21]
        assert none.steps(request, 100) == 100


def test_more_acceptance_never_takes_more_steps() -> None:
    """Request by request, as uniforms are common: a better rate, or a longer draft."""
    rates = [(0.2,), (0.2, 0.2), (0.5, 0.2), (0.5, 0.5, 0.5), (0.5, 0.9, 0.5), (0.9, 0.9, 0.9, 0.1)]
    drawn = [draws(*each) for each in rates]
    taken = [[one.steps(request, 77) for request in range(300)] for one in drawn]
    for worse, better in pairwise(taken):
        assert all(one >= other for one, other in zip(worse, better, strict=True))
        assert sum(worse) > sum(better)


def test_requests_are_spread_as_independent_ones_are() -> None:
    """Of m tokens, the steps have the variance of a renewal process: m x variance / mean^3 of a step's."""
    rates = (0.7,) * 3
    survivals = np.cumprod(rates)
    mean = 1 + survivals.sum()
    second = 1 + sum((2 * i + 1) * p for i, p in enumerate(survivals, start=1))
    one = draws(*rates)
    taken = [one.steps(request, 400) for request in range(4000)]
    assert np.var(taken) == pytest.approx(400 * (second - mean**2) / mean**3, rel=0.1)


def test_a_request_longer_than_the_pool_goes_round_it() -> None:
    one = draws(0.5, 0.5)
    rounds = 3
    emitted = round(one.mean_tokens * STEPS)
    assert one.steps(7, rounds * emitted) == rounds * STEPS
    assert one.steps(7, rounds * emitted + 40) == rounds * STEPS + one.steps(7, 40)
