"""What was probably meant by a name that nothing has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim.config.names import distance, is_slip, nearest

TEXT = st.text("abc", max_size=6)


@pytest.mark.parametrize(
    ("name", "close"),
    [
        *(("schedular", "scheduler"), ("Router", "router"), ("slo_", "slo"), ("zzz", None), ("", None)),
        *(("sead", "seed"), ("esed", "seed"), ("ste", "steady"), ("st", None), ("rate", None)),
    ],
)
def test_the_nearest_name_is_the_one_that_was_meant(name: str, close: str | None) -> None:
    assert nearest(name, ["scheduler", "router", "slo", "seed", "steady", "steadyness"]) == close


@pytest.mark.parametrize(
    ("name", "close", "slip"),
    [
        *(("continous", "continuous", True), ("poison", "poisson", True), ("h100", "h100-sxm", True)),
        *(("h100-smx", "h100-sxm", True), ("lama3.1-70b", "llama3.1-70b", True)),
        *(("b200-sxm", "h200-sxm", False), ("h20-sxm", "h200-sxm", False), ("h100-nvl", "h100-sxm", False)),
        ("llama3.2-70b", "llama3.1-70b", False),
    ],
)
def test_another_number_is_another_thing(name: str, close: str, slip: bool) -> None:
    assert is_slip(name, close) is slip


@pytest.mark.parametrize(
    ("a", "b", "edits"),
    [("", "abc", 3), ("kitten", "sitting", 3), ("seed", "sead", 1), ("ab", "ba", 1), ("ca", "abc", 3)],
)
def test_edits_are_counted(a: str, b: str, edits: int) -> None:
    assert distance(a, b) == edits


@given(TEXT, TEXT, st.integers(0, 6), st.sampled_from("abc"))
def test_edits_obey_the_laws_of_a_distance(a: str, b: str, place: int, letter: str) -> None:
    assert distance(a, b) == distance(b, a)
    assert (distance(a, b) == 0) == (a == b)
    assert abs(len(a) - len(b)) <= distance(a, b) <= max(len(a), len(b))
    assert abs(distance(a[:place] + letter + a[place:], b) - distance(a, b)) <= 1
