"""The verdict of several seeds, and the loads between which it turns."""

import math

from hypothesis import given
from hypothesis import strategies as st

from servesim.frontier.objective import Bracket, bracket, judged, pooled_attainment


def row(attainment: float | None = 1.0, count: int = 100, saturated: object = False, settled: object = True):  # type: ignore[no-untyped-def]
    figures = {"goodput.attainment": attainment, "goodput.judged": count, "goodput.target": 0.99}
    return figures | {"saturated": saturated, "settled": settled}


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 50)), min_size=1))
def test_requests_are_counted_in_one_heap(seeds: list[tuple[int, int]]) -> None:
    good, judged_ = [min(pair) for pair in seeds], [pair[1] for pair in seeds]
    shares = [part / whole for part, whole in zip(good, judged_, strict=True)]
    assert math.isclose(pooled_attainment(shares, judged_), sum(good) / sum(judged_), abs_tol=1e-12)


def test_seeds_without_a_figure_are_left_out_and_unknown_numbers_weigh_alike() -> None:
    assert pooled_attainment([math.nan, 0.5], [10, 10]) == 0.5
    assert pooled_attainment([1.0, 0.5], [math.nan, math.nan]) == 0.75
    assert math.isnan(pooled_attainment([math.nan], [5]))


def test_one_seed_that_just_misses_does_not_decide() -> None:
    assert judged([row(0.988), row(0.996), row(0.997)]).meets is True
    assert judged([row(0.98), row(0.99), row(0.99)]).meets is False


def test_what_is_saturated_misses_and_of_what_failed_or_is_unsettled_nobody_can_tell() -> None:
    assert judged([row(), row(saturated=True)]).meets is False
    assert judged([row()], False).meets is None
    unsettled = judged([row(settled=False), row()])
    assert (unsettled.meets, unsettled.settled) == (None, False)
    assert judged([row(settled=False), row(), row()]).meets is True
    assert judged([row(settled=False, saturated=True)]).meets is False


def test_requests_cut_at_the_horizon_leave_it_open_only_where_they_decide() -> None:
    share, verdicts = {0.999: True, 0.985: None, 0.9: False}, {}
    for attainment in share:
        verdicts[attainment] = judged([row(attainment) | {"goodput.cut": 1}, row(attainment)]).meets
    assert verdicts == share


def test_without_an_slo_there_is_no_verdict() -> None:
    assert judged([row(None)]).meets is None
    assert judged([], False).meets is None


@given(st.lists(st.floats(0.1, 100), min_size=1, unique=True), st.floats(0.05, 200))
def test_the_ends_are_those_of_the_loads_tried(loads: list[float], edge: float) -> None:
    found = bracket(loads, [load <= edge for load in loads])
    assert found.meets == max((load for load in loads if load <= edge), default=None)
    assert found.misses == min((load for load in loads if load > edge), default=None)


def test_a_load_that_meets_above_one_that_misses_does_not_count() -> None:
    assert bracket([1, 2, 4, 8], [True, False, True, False]) == Bracket(1, 2)


def test_words() -> None:
    assert str(Bracket(1.5, 2.0)) == "meets up to 1.5, misses at 2"
    assert str(Bracket(None, 2.0)) == "misses at 2, the lowest load tried"
    assert str(Bracket(4.0, None)) == "meets up to 4, the highest load tried"
    assert (
        str(bracket([1, 2, 4], [None, True, None]))
        == "meets up to 2, the highest load judged; no verdict at 1, 4"
    )
    assert str(bracket(range(9), [None] * 9)) == "no verdict at 9 loads"
