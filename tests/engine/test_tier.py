"""A memory of runs of blocks: what it holds, what it loses first, and where that goes."""

from __future__ import annotations

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from servesim.engine.copies import Copies
from servesim.engine.tier import Tier
from servesim.engine.tiers import Shelf, Tiers


def shelf(blocks: int, block_s: float = 0.0, latency_s: float = 0.0) -> Shelf:
    return Shelf(Tier(blocks), Copies(block_s, latency_s), Copies(block_s, latency_s))


def found(tiers: Tiers, key: int, now: float = inf) -> list[tuple[int, int]]:
    """Return the runs in which a key is found from its beginning on."""
    return [(part.low, part.high) for part in tiers.look([(key, 0, inf)], 0, 10**9, now)]


def test_runs_side_by_side_become_one() -> None:
    tiers = Tiers([shelf(100)])
    for low, high in ((6, 8), (2, 4), (4, 6), (0, 2), (1, 7)):
        tiers.write(1, low, high, 0.0)
    assert found(tiers, 1) == [(0, 8)]
    assert tiers.shelves[0].writes.blocks == tiers.shelves[0].tier.used == 8


def test_the_least_recently_used_is_lost_first_and_of_a_run_its_end() -> None:
    tiers = Tiers([shelf(10)])
    for key in (1, 2):
        tiers.write(key, 0, 4, 0.0)
    tiers.load(tiers.look([(1, 0, inf)], 0, 4, 0.0), 0.0)
    tiers.write(3, 0, 5, 0.0)
    assert [found(tiers, key) for key in (1, 2, 3)] == [[(0, 4)], [(0, 1)], [(0, 5)]]


def test_what_is_larger_than_the_tier_is_kept_from_its_beginning() -> None:
    tiers = Tiers([shelf(10), shelf(100)])
    tiers.write(1, 0, 15, 0.0)
    assert found(tiers, 1) == [(0, 10), (10, 15)]


def test_what_is_being_written_cannot_be_read() -> None:
    """Two blocks of 3 s each behind one another, 1 s of latency."""
    tiers = Tiers([shelf(10, block_s=3.0, latency_s=1.0)])
    tiers.write(1, 0, 1, 10.0)
    tiers.write(2, 0, 1, 10.0)
    assert [found(tiers, 1, now) for now in (13.9, 14.0)] == [[], [(0, 1)]]
    assert [found(tiers, 2, now) for now in (16.9, 17.0)] == [[], [(0, 1)]]


def test_a_sequence_goes_on_over_keys_and_shelves_up_to_a_gap() -> None:
    near, far = shelf(100, block_s=1.0), shelf(100, block_s=10.0)
    tiers = Tiers([near, far])
    near.tier.put("a", 0, 4, -inf)
    far.tier.put("b", 4, 8, -inf)
    near.tier.put("c", 8, 9, -inf)
    near.tier.put("d", 12, 20, -inf)
    parts = tiers.look([("a", 0, 4), ("b", 4, 8), ("c", 8, 12), ("d", 12, inf)], 2, 100, 0.0)
    assert [(part.key, part.low, part.high) for part in parts] == [("a", 2, 4), ("b", 4, 8), ("c", 8, 9)]
    assert tiers.load(parts, 100.0) == 140.0  # three blocks of 1 s beside four of 10 s
    assert [part.key for part in tiers.look([("a", 0, 4), ("b", 4, 8)], 0, 6, 0.0)] == ["a", "b"]


OPERATIONS = st.lists(
    st.tuples(st.booleans(), st.integers(0, 3), st.integers(0, 20), st.integers(1, 12)), max_size=40
)


@given(OPERATIONS, st.integers(0, 30))
def test_nothing_is_lost_while_the_last_tier_has_room(
    operations: list[tuple[bool, int, int, int]], capacity: int
) -> None:
    """A near tier that is often full and a far one that never is hold all that was written; no more."""
    tiers = Tiers([shelf(capacity), shelf(10**6)])
    held: dict[int, set[int]] = {key: set() for key in range(4)}
    for writes, key, low, blocks in operations:
        if writes:
            tiers.write(key, low, low + blocks, 0.0)
            held[key] |= set(range(low, low + blocks))
        else:
            tiers.forget(key, low)
            held[key] -= set(range(low, 100))
        assert tiers.shelves[0].tier.used <= capacity
    for key, blocks in held.items():
        everywhere = [each.tier.gaps(key, 0, 100) for each in tiers.shelves]
        missing = [{place for gap in gaps for place in range(*gap)} for gaps in everywhere]
        assert missing[0] & missing[1] == set(range(100)) - blocks
    for each in tiers.shelves:
        counted = sum(100 - sum(high - low for low, high in each.tier.gaps(key, 0, 100)) for key in held)
        assert each.tier.used == counted
