"""Numbers of turns against theory."""

from __future__ import annotations

import numpy as np
import pytest

from servesim.check import ConfigError, check
from servesim.workload.turns import Fixed, Geometric, Turns, Uniform

#: The middles of equal shares: an exact integral up to the width of one.
SHARES = (np.arange(20_000) + 0.5) / 20_000


def numbers(turns: Turns) -> np.ndarray:
    return np.array([turns.of(share) for share in SHARES.tolist()])


@pytest.mark.parametrize("turns", [Fixed(3), Geometric(1.0), Geometric(4.0), Geometric(30.0), Uniform(2, 7)])
def test_the_mean_is_that_of_the_numbers(turns: Turns) -> None:
    assert numbers(turns).mean() == pytest.approx(turns.mean, rel=1e-3)
    assert numbers(turns).min() >= 1


def test_a_geometric_conversation_ends_after_each_turn_with_the_same_probability() -> None:
    found = numbers(Geometric(4.0))
    for turn in range(1, 8):
        assert (found == turn).sum() / (found >= turn).sum() == pytest.approx(1 / 4, abs=2e-3)


def test_uniform_numbers_are_equally_likely() -> None:
    assert np.bincount(numbers(Uniform(2, 5))).tolist() == [0, 0, 5000, 5000, 5000, 5000]


def test_no_number_between_the_bounds_is_a_problem() -> None:
    with pytest.raises(ConfigError, match="most = 2: must be at least least, 3"):
        check(Uniform(3, 2))
