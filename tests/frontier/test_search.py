"""Bisection, on thresholds that are known."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim.frontier.search import fewest, highest


@given(st.integers(1, 500), st.integers(1, 500), st.integers(1, 500))
def test_the_fewest_is_the_threshold_or_the_start(threshold: int, low: int, high: int) -> None:
    found = fewest(lambda number: number >= threshold, low, high)
    expected = max(threshold, low)
    assert found == (expected if expected <= high else None)


@given(st.integers(1, 200), st.lists(st.booleans(), min_size=200, max_size=200))
def test_noise_or_not_what_is_found_meets_and_its_neighbour_fails(low: int, noise: list[bool]) -> None:
    found = fewest(lambda number: noise[number - 1], low, 200)
    if found is not None:
        assert noise[found - 1]
        assert found == low or not noise[found - 2]


def test_few_numbers_are_tried() -> None:
    tried: list[int] = []

    def meets(number: int) -> bool:
        tried.append(number)
        return number >= 777

    assert fewest(meets, 1, 10_000) == 777
    assert len(tried) == len(set(tried)) <= 22


@given(st.floats(1.0, 1e4), st.floats(1.0, 1e4), st.sampled_from([0.01, 0.02, 0.1]))
def test_the_highest_is_within_the_tolerance(threshold: float, guess: float, tolerance: float) -> None:
    low, high = highest(lambda factor: factor <= threshold, 1.0, guess, tolerance)
    assert low <= threshold < high
    assert high <= low * (1 + tolerance) * (1 + 1e-12)


@pytest.mark.parametrize("guess", [0.5, 1.0])
def test_a_guess_below_the_start_does_no_harm(guess: float) -> None:
    assert highest(lambda factor: False, 1.0, guess, 0.02) == (1.0, 1.02)
