"""Dividing replicas between two pools."""

from hypothesis import given
from hypothesis import strategies as st

from servesim.frontier.splits import MOST, hopeless, splits


@given(st.integers(2, 60), st.integers(1, 5), st.integers(1, 5), st.floats(0.01, 100.0))
def test_all_replicas_are_used_and_the_most_balanced_split_comes_first(
    replicas: int, prefill: int, decode: int, ratio: float
) -> None:
    found = splits(replicas, (prefill, decode), (ratio, 1.0))
    assert len(found) == min(MOST, max(replicas - prefill - decode + 1, 0))
    assert len(set(found)) == len(found)
    for split in found:
        assert sum(split) == replicas
        assert split[0] >= prefill
        assert split[1] >= decode
    distances = [abs(split[0] - replicas * ratio / (ratio + 1)) for split in found]
    assert distances == sorted(distances)


def test_what_is_no_larger_in_either_pool_than_a_failure_is_hopeless() -> None:
    assert hopeless((2, 3), [(1, 9), (2, 3)])
    assert hopeless((1, 3), [(2, 3)])
    assert not hopeless((3, 1), [(2, 3)])
