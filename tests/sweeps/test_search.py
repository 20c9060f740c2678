"""The load axis that finds itself, on curves that are known."""

from itertools import pairwise

from hypothesis import assume, given
from hypothesis import strategies as st

from servesim.frontier.objective import bracket
from servesim.sweeps.search import COARSE, FINEST, LoadSearch, Measured


def queue(load: float, capacity: float, closed: bool = False) -> Measured:
    """A server of some capacity: latency grows as 1/(1 - utilisation) up to it, and with the load beyond."""
    used = load / capacity
    latency_s = 1 / (1 - used) if used < 0.99 else 100 * used
    good = max(0.0, min(1.0, 2 - 1.2 * used))
    saturated = used >= 1 and not closed
    done = min(load, capacity)
    return Measured(saturated, done, latency_s, good, good >= 0.99 and not saturated, done * latency_s)


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


@given(st.floats(0.1, 10), st.floats(1 / 500, 4))
def test_the_end_of_the_slo_is_bracketed_within_the_budget(start: float, ratio: float) -> None:
    """A system that meets the SLO up to a load which may lie far below the start, or above it."""
    edge = start * ratio
    search, tried = LoadSearch(start, 14), set()
    while loads := search.propose():
        tried |= set(loads)
        for load in loads:
            met = load <= edge
            search.tell(
                load, Measured(load > 4 * edge, min(load, 4 * edge), 1 + load / edge, float(met), met)
            )
    meets, misses = bracket(sorted(tried), [load <= edge for load in sorted(tried)])[:2]
    assert len(tried) <= 14
    assert meets is not None
    assert misses is not None
    assert meets <= edge < misses <= 1.45 * meets


def test_no_lighter_load_is_looked_for_than_one_at_which_a_request_is_alone() -> None:
    """The SLO is missed at any load; a request takes 2 s, so that 0.25 requests/s leave it alone."""
    search, tried = LoadSearch(4.0, 30), set()
    while loads := search.propose():
        tried |= set(loads)
        for load in loads:
            search.tell(load, Measured(load > 8, load, 1.0 + load, 0.0, False, 2 * load))
    assert min(tried) == 0.25


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
