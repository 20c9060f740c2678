from statistics import NormalDist

import numpy as np
import pytest

from servesim.workload.normal import normal_cdf


def test_it_is_the_distribution_function_of_the_standard_normal() -> None:
    numbers = np.linspace(-5, 5, 101)
    assert normal_cdf(numbers) == pytest.approx([NormalDist().cdf(number) for number in numbers], rel=1e-9)


def test_far_tails_keep_their_digits() -> None:
    """Phi(-8) = 6.2210e-16 and Phi(-20) = 2.7536e-89 (tables of the normal distribution)."""
    assert normal_cdf(np.array([-8.0, -20.0])) == pytest.approx([6.22096057e-16, 2.75362412e-89], rel=1e-8)
