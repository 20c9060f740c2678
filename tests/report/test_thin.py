"""Thinning keeps the same rows, in order, and no more than asked for."""

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from servesim.report.thin import thinned


def rows(count: int) -> pd.DataFrame:
    return pd.DataFrame({"number": range(count), "name": [f"row {number}" for number in range(count)]})


@given(st.integers(0, 300), st.integers(1, 300))
def test_rows_stay_in_order_and_at_most_so_many(count: int, most: int) -> None:
    kept = thinned(rows(count), most, ["name"])
    assert len(kept) == min(count, most)
    assert kept.number.is_monotonic_increasing
    assert kept.number.is_unique


@given(st.integers(2, 100))
def test_more_keeps_what_fewer_kept(most: int) -> None:
    fewer, more = (set(thinned(rows(200), each, ["name"]).number) for each in (most - 1, most))
    assert fewer < more


def test_the_choice_depends_on_the_row_not_on_its_place() -> None:
    forth, back = rows(200), rows(200)[::-1]
    assert set(thinned(forth, 50, ["name"]).number) == set(thinned(back, 50, ["name"]).number)


def test_the_choice_is_spread_evenly() -> None:
    kept = thinned(rows(10_000), 1000, ["number"])
    assert all(70 < count < 130 for count in (kept.number // 1000).value_counts())
