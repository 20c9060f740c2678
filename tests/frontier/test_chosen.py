"""Which load of a configuration is shown, and at which two variants are compared."""

from typing import Any

import pandas as pd

from servesim.frontier.chosen import DECIDING, best_loads, common_loads

GOOD, DONE, COST = DECIDING


def point(variant: str, load: float, meets: bool, cost: float = 1.0, **known: Any) -> dict[str, Any]:
    plain = {"seeds": 1, "failed": 0, "saturated": 0.0, "settled": True, "pooled": float(meets)}
    return (
        {"variant": variant, "load": load, "meets": meets, GOOD: load, DONE: load, COST: cost} | plain | known
    )


def test_the_cheapest_load_that_meets_the_slo_is_shown_whatever_the_goodput_of_others() -> None:
    means = pd.DataFrame([point("a", 1, True, 9.0), point("a", 2, True, 5.0), point("a", 4, False, 2.0)])
    assert list(best_loads(means, ["variant"])["load"]) == [2]


def test_where_none_meets_it_the_most_goodput_of_a_settled_run_is_shown() -> None:
    rows = [point("a", 1, False), point("a", 2, False), point("a", 4, False, settled=False)]
    assert list(best_loads(pd.DataFrame(rows), ["variant"])["load"]) == [2]


def compared_at(rows: list[dict[str, Any]]) -> list[float]:
    return list(common_loads(pd.DataFrame(rows), ["load"], "b")["load"])


def test_variants_are_compared_at_the_highest_load_that_one_of_them_carries() -> None:
    rows = [point("b", load, load <= 1) for load in (1, 2, 4)] + [point("a", x, x <= 2) for x in (1, 2, 4)]
    assert compared_at(rows) == [2]
    assert compared_at([row | {"saturated": float(row["load"] == 2)} for row in rows]) == [1]


def test_else_at_the_lowest_that_both_have() -> None:
    rows = [point(name, load, False) for name in "ab" for load in (1, 2, 4)]
    assert compared_at(rows[1:]) == [2]


def test_without_an_slo_at_the_highest_that_is_not_saturated() -> None:
    rows = [point(n, x, False, pooled=float("nan"), saturated=float(x == 4)) for n in "ab" for x in (1, 2, 4)]
    assert compared_at(rows) == [2]
