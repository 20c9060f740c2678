"""Cells of a table: what is read, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim.workload.formats import cells


@given(st.lists(st.integers(1, 10**9), min_size=1))
def test_whole_numbers_are_read_back(values: list[int]) -> None:
    assert cells.tokens([str(value) for value in values], 1).tolist() == values


@pytest.mark.parametrize(
    "cell",
    [
        "",
        " ",
        "0",
        "-3",
        "+3",
        "12.5",
        "12.0",
        "1e3",
        "1_000",
        "nan",
        "inf",
        "x",
        "²",
        "1_0",
        "\u0661",
        "1000000001",
        "9" * 5000,
    ],
)
def test_other_tokens_are_refused(cell: str) -> None:
    with pytest.raises(ValueError):
        cells.tokens(["7", cell, "9"], 1)


def test_zero_is_a_whole_number_where_it_may_be() -> None:
    assert cells.tokens(["0", "5"], 0).tolist() == [0, 5]


@given(st.lists(st.integers(0, 10**15), min_size=1))
def test_seconds_are_read_to_the_nanosecond(values: list[int]) -> None:
    """Up to 1e6 s a double tells nanoseconds apart."""
    texts = [f"{value // 10**9}.{value % 10**9:09d}" for value in values]
    assert cells.seconds(texts).tolist() == values


def test_seconds_come_as_a_whole_number_or_with_an_exponent_too() -> None:
    assert cells.seconds(["0", "12", "1.5e3", "0.25"]).tolist() == [0, 12 * 10**9, 1500 * 10**9, 250_000_000]


@pytest.mark.parametrize(
    "cell", ["", "-1", "-0.001", "nan", "inf", "-inf", "1e400", "9.1e9", "soon", "12:30", "1_0", "\u0661"]
)
def test_other_seconds_are_refused(cell: str) -> None:
    with pytest.raises(ValueError):
        cells.seconds(["7", cell, "9"])


def test_seven_fractional_digits_are_kept() -> None:
    later, earlier = cells.timestamps(["2023-11-16 18:15:46.6805901", "2023-11-16 18:15:46.6805900"])
    assert later - earlier == 100
    assert earlier == 1_700_158_546_680_590_000


@given(st.integers(0, 2**62))
def test_timestamps_are_nanoseconds_since_1970(value: int) -> None:
    text = str(np.datetime64(value, "ns"))
    assert cells.timestamps([text, text.replace("T", " "), f"{text}+00:00"]).tolist() == [value] * 3


@pytest.mark.parametrize(
    "cell",
    [
        "",
        "now",
        "today",
        "NaT",
        "2023",
        "2023-11-16",
        "2023-02-30 00:00:00",
        "2023-11-16 25:00:00",
        "2023-11-16 18:15:46.12345678901",
        "2023-11-16 18:15:46+02:00",
        "1923-11-16 18:15:46",
        "9999-11-16 18:15:46",
        "1700158546.68",
    ],
)
def test_other_timestamps_are_refused(cell: str) -> None:
    with pytest.raises(ValueError):
        cells.timestamps(["2023-11-16 18:15:46", cell])
