"""Tables over seeds."""

import math

import pandas as pd
import pytest

from servesim.frontier.intervals import paired_difference, replicate_interval
from servesim.frontier.replications import compared, over_seeds, settings

M = "latency.x"


def table(*rows: tuple[str, int, int, float | None]) -> pd.DataFrame:
    """Return a sweep's table of (variant, load, seed, figure), failed where there is no figure."""
    return pd.DataFrame(
        {
            "point": range(len(rows)),
            "variant": [row[0] for row in rows],
            "load": [row[1] for row in rows],
            "seed": [row[2] for row in rows],
            "status": ["failed" if row[3] is None else "clean" for row in rows],
            "error": None,
            "command": [f"servesim {number}" for number in range(len(rows))],
            "hash": "",
            M: [row[3] for row in rows],
            "saturated": [None if row[3] is None else row[3] > 5 for row in rows],
        }
    )


SWEEP = table(
    *(("b", 2, 0, 4.0), ("b", 2, 1, 6.0), ("b", 1, 0, 1.0), ("b", 1, 1, None)),
    *(("a", 2, 0, 1.0), ("a", 2, 1, 2.0), ("a", 3, 0, 1.0)),
)


def test_each_configuration_and_load_is_a_row_in_grid_order() -> None:
    found = over_seeds(SWEEP, [M])
    assert settings(SWEEP) == ["variant", "load"]
    assert list(zip(found["variant"], found["load"], strict=True)) == [("b", 2), ("b", 1), ("a", 2), ("a", 3)]
    assert list(found["seeds"]) == [2, 2, 2, 1]
    assert list(found["failed"]) == [0, 1, 0, 0]
    assert list(found["command"]) == ["servesim 0", "servesim 2", "servesim 4", "servesim 6"]
    assert found["saturated"].tolist() == [0.5, 0.0, 0.0, 0.0]


def test_means_have_their_intervals() -> None:
    found = over_seeds(SWEEP, [M, "unknown"])
    assert tuple(found.loc[0, [M, f"{M}.low", f"{M}.high"]]) == replicate_interval([4, 6])[:3]
    assert found[M][1] == 1.0
    assert math.isnan(found[f"{M}.low"][1])
    assert found["unknown"].isna().all()


def test_variants_are_compared_by_seed_where_both_were_run() -> None:
    found = compared(SWEEP, M, "a")
    assert found[["variant", "load", "n"]].to_numpy().tolist() == [["b", 2, 2]]
    expected = paired_difference([4, 6], [1, 2])
    assert tuple(found.loc[0, ["difference", "low", "high"]]) == expected[:3]


@pytest.mark.parametrize("baseline", ["nobody", "b"])
def test_nothing_to_compare_is_an_empty_table(baseline: str) -> None:
    found = compared(SWEEP[SWEEP["variant"] == "b"], M, baseline)
    assert list(found.columns) == ["variant", "load", "difference", "low", "high", "n"]
    assert found.empty


def test_a_table_without_figures_has_rows_without_figures() -> None:
    found = over_seeds(table(("a", 1, 0, None)).drop(columns=[M, "saturated"]), [M])
    assert found["failed"].tolist() == [1]
    assert found[[M, "saturated"]].isna().all(axis=None)
