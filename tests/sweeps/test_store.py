"""What has been run already survives whatever kills the process."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim.sweeps.point import Outcome
from servesim.sweeps.store import NAME, Store

FIGURES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
OUTCOMES = st.builds(
    Outcome, st.just("clean"), st.none(), st.dictionaries(st.text(), FIGURES, min_size=1)
) | st.builds(Outcome.failed, st.text())


def filled(folder: Path, count: int) -> dict[str, Outcome]:
    outcomes = {f"{number:032x}": Outcome("clean", None, {"a.b": number / 7}) for number in range(count)}
    with Store(folder) as store:
        for key, outcome in outcomes.items():
            store.add(key, outcome)
    return outcomes


@given(st.dictionaries(st.from_regex(r"[0-9a-f]{32}", fullmatch=True), OUTCOMES, max_size=5))
def test_what_was_kept_is_read_back_exactly(
    tmp_path_factory: pytest.TempPathFactory, kept: dict[str, Outcome]
) -> None:
    folder = tmp_path_factory.mktemp("store")
    with Store(folder) as store:
        for key, outcome in kept.items():
            store.add(key, outcome)
    with Store(folder) as store:
        assert {key: store.get(key) for key in kept} == kept


def test_a_file_torn_anywhere_costs_the_torn_line_alone(tmp_path: Path) -> None:
    outcomes = filled(tmp_path / "whole", 3)
    said = (tmp_path / "whole" / NAME).read_bytes()
    ends = [index for index, byte in enumerate(said) if byte == ord("\n")]
    for cut in range(len(said) + 1):
        folder = tmp_path / str(cut)
        folder.mkdir()
        (folder / NAME).write_bytes(said[:cut])
        with Store(folder) as store:
            found = [key for key in outcomes if store.get(key) == outcomes[key]]
            assert len(found) == sum(end <= cut for end in ends)
            store.add("f" * 32, outcomes[min(outcomes)])
        with Store(folder) as store:
            assert store.get("f" * 32) == outcomes[min(outcomes)]
            assert all(store.get(key) == outcomes[key] for key in found)


def test_rubbish_is_passed_over(tmp_path: Path) -> None:
    outcomes = filled(tmp_path, 1)
    with (tmp_path / NAME).open("ab") as file:
        file.write(b'\x00\xff}\nabc {"status": 1}\nabd [1}\n\n')
    with Store(tmp_path) as store:
        assert [store.get(key) for key in ("abc", "abd", "", *outcomes)] == [None] * 3 + list(
            outcomes.values()
        )


@pytest.mark.parametrize(
    "said",
    [
        '{"status": "clean", "error": null, "figures": null}',
        '{"status": "clean", "error": null, "figures": [1]}',
        '{"status": "clean", "error": null, "figures": {}}',
        '{"status": "clean", "error": null, "figures": {"a": [1]}}',
        '{"status": 7, "error": null, "figures": {"a": 1}}',
        '{"status": ["clean"], "error": null, "figures": {"a": 1}}',
        '{"status": "failed", "error": null, "figures": {}}',
        '{"status": ' + "[" * 100_000 + "]" * 100_000 + ', "error": null, "figures": {}}',
    ],
)
def test_json_that_is_no_outcome_counts_as_absent(said: str, tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(f"abc {said}\n")
    with Store(tmp_path) as store:
        assert store.get("abc") is None


def test_what_may_not_recur_is_not_written_down(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.add("a", Outcome.failed("MemoryError"), lasting=False)
        assert store.get("a") == Outcome.failed("MemoryError")
    with Store(tmp_path) as store:
        assert store.get("a") is None


def test_a_store_without_a_folder_lives_in_memory() -> None:
    with Store() as store:
        store.add("a", Outcome("clean", None, {"x": math.pi}))
        assert store.get("a") == Outcome("clean", None, {"x": math.pi})
        assert store.get("b") is None
