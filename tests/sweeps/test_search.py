"""The load axis that finds itself, on curves that are known."""

from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from servesim.sweeps.search import COARSE, FINEST, LoadSearch, Measured


def queue(load: float, capacity: float, closed: bool = False) -> Measured:
    """A server of some capacity: latency grows as 1/(1 - utilisation) up to it, and with the load beyond."""
    used = load / capacity
    latency_s = 1 / (1 - used) if used < 0.99 else 100 * used
    good = max(0.0, min(1.0, 2 - 1.2 * used))
    return Measured(used >= 1 and not closed, min(load, capacity), latency_s, good)


def searched(
    start: float, capacity: float, points: int, whole: bool = False, closed: bool = False
) -> list[list[float]]:
    """Return the rounds of a search."""
    search, rounds = LoadSearch(start, points, whole), []
    while loads := search.propose():
        rounds.append(loads)
        for load in loads:
            search.tell(load, queue(load, capacity, closed))
        assert len(rounds) <= points
    return rounds


@given(st.floats(1e-3, 1e3), st.floats(1e-2, 1e2), st.integers(3, 30))
def test_loads_are_new_positive_and_within_the_budget(start: float, ratio: float, points: int) -> None:
    tried = [load for loads in searched(start, start * ratio, points) for load in loads]
    assert len(tried) == len(set(tried)) <= points
    assert all(load > 0 for load in tried)


@given(st.floats(1e-2, 1e2), st.floats(1 / 16, 16))
def test_saturation_is_bracketed_closely(start: float, ratio: float) -> None:
    capacity = start * ratio
    loads = sorted(load for loads in searched(start, capacity, 20) for load in loads)
    below = max(load for load in loads if load < capacity)
    above = min(load for load in loads if load >= capacity)
    assert above / below <= FINEST**2


@given(st.floats(0.1, 10), st.floats(0.1, 50))
def test_nothing_far_beyond_saturation_is_tried(start: float, ratio: float) -> None:
    capacity = start * ratio
    beyond = [
        load for loads in searched(start, capacity, 16)[1:] for load in loads if load > capacity * COARSE
    ]
    assert beyond == []


def test_most_loads_are_near_the_knee() -> None:
    loads = [load for loads in searched(1.0, 10.0, 16) for load in loads]
    assert sum(5 <= load <= 16 for load in loads) >= 8


@given(st.floats(0.1, 10), st.floats(0.1, 50), st.randoms())
def test_proposals_do_not_depend_on_the_order_of_the_answers(
    start: float, ratio: float, random: object
) -> None:
    one, other = LoadSearch(start, 12), LoadSearch(start, 12)
    while loads := one.propose():
        assert other.propose() == loads
        for load in loads:
            one.tell(load, queue(load, start * ratio))
        random.shuffle(loads)  # type: ignore[attr-defined]
        for load in loads:
            other.tell(load, queue(load, start * ratio))


def test_configurations_that_start_alike_are_first_measured_at_the_same_loads() -> None:
    assert searched(4.0, 3.0, 12)[0] == searched(4.0, 300.0, 12)[0] == [1.0, 4.0, 16.0]


@given(st.integers(1, 100), st.integers(1, 2000))
def test_users_are_whole_numbers(start: int, capacity: int) -> None:
    loads = sorted(load for loads in searched(start, capacity, 14, whole=True, closed=True) for load in loads)
    assert all(load >= 1 and load == int(load) and isinstance(load, int) for load in loads)
    assert all(high > low for low, high in pairwise(loads))


def test_a_closed_loop_is_at_its_limit_where_throughput_stops_growing() -> None:
    loads = [load for loads in searched(8, 40, 14, whole=True, closed=True) for load in loads]
    assert max(loads) == 512  # 128 gained on 32, and 512 gains nothing
    assert sum(20 <= load <= 130 for load in loads) >= 5


def test_a_light_load_is_looked_for_where_the_slo_is_missed() -> None:
    search = LoadSearch(4.0, 30)
    tried = set()
    while loads := search.propose():
        tried |= set(loads)
        for load in loads:
            search.tell(load, Measured(load > 8, load, 1.0 + load, 0.0))
    assert min(tried) == pytest.approx(4 / COARSE**3, rel=1e-2)


def test_a_configuration_that_never_runs_is_given_up() -> None:
    search = LoadSearch(1.0, 12)
    for load in search.propose():
        search.tell(load, None)
    assert search.propose() == []


def test_a_load_whose_runs_failed_counts_as_past_saturation() -> None:
    search = LoadSearch(1.0, 12)
    for load in search.propose():
        search.tell(load, None if load > 1 else queue(load, 100))
    assert all(load < 4 for load in search.propose())


@given(st.integers(3, 12), st.lists(st.none() | st.floats(0, 10), min_size=12, max_size=12))
def test_any_answers_end_the_search(points: int, answers: list[float | None]) -> None:
    search, rounds = LoadSearch(1.0, points), 0
    while loads := search.propose():
        rounds += 1
        assume(rounds <= points)
        for load in loads:
            value = answers[hash(load) % len(answers)]
            search.tell(load, None if value is None else Measured(value > 8, value, value, None))
    assert rounds <= points
