"""Latencies by tenant and by class: every request is in one group, and each line is that of its group."""

import numpy as np
import pandas as pd
import pytest

from servesim.report.content import Choice
from servesim.report.run.divided import MOST_LINES, divided_section, divisions
from servesim.report.run.latency import cdf

LIMITS = {"ttft_s": 0.5, "tpot_s": None, "e2e_s": None}


def requests(tenant: list[int], priority: list[int]) -> pd.DataFrame:
    times = np.linspace(0.01, 2.0, len(tenant))
    known = pd.DataFrame({"ttft_s": times, "tpot_s": times / 50, "e2e_s": 2 * times})
    return known.assign(tenant=tenant, priority=priority)


@pytest.mark.parametrize(
    ("tenant", "priority", "words"),
    [
        ([0, 0, 0, 0], [0, 0, 0, 0], []),
        ([0, 1, 0, 1], [0, 0, 0, 0], ["tenant"]),
        ([0, 0, 0, 0], [0, 1, 0, 1], ["class"]),
        ([0, 1, 0, 1], [5, -1, 5, -1], ["tenant"]),
        ([0, 0, 1, 1], [5, -1, 2, 2], ["tenant", "class"]),
        ([0, 1, 2, 1], [5, -1, 5, -1], ["tenant", "class"]),
    ],
)
def test_requests_divide_where_they_are_of_several(
    tenant: list[int], priority: list[int], words: list[str]
) -> None:
    table = requests(tenant, priority)
    found = [*divisions(table, {"paid": {}, "free": {}})]
    assert [division.word for division in found] == words
    for division in found:
        assert sorted(pd.concat([*division.groups.values()]).index) == [*table.index]
    section = divided_section(table, {}, LIMITS)
    assert (
        [part.title for part in section.parts] == [f"Latency by {word}" for word in words] if section else 1
    )


def test_each_line_is_that_of_its_group() -> None:
    table = requests([0, 1, 2, 2, 1, 0, 1], [0] * 7)
    section = divided_section(table, {"paid": {}, "free": {}}, LIMITS)
    assert section is not None
    (card,) = section.parts
    assert isinstance(card, Choice)
    ttft, tpot, _ = (chart.figure for chart in card.charts)
    assert [line.name.partition(",")[0] for line in ttft.data] == ["paid", "free", "2", "limit 500 ms"]
    assert len(tpot.data) == 3, "no limit"
    for number, line in enumerate(tpot.data):
        x, y = cdf(table[table.tenant == number].tpot_s)
        np.testing.assert_array_equal(line.x, 1e3 * x)
        np.testing.assert_array_equal(line.y, y)


def test_many_tenants_are_drawn_as_the_busiest_and_the_others() -> None:
    table = requests([*range(20), 7, 7, 9], [0] * 23)
    (division,) = divisions(table, {})
    values = division.values("e2e_s")
    assert len(values) == MOST_LINES
    assert {"7", "9", "the others"} <= set(values)
    assert sum(map(len, values.values())) == len(table)
    assert division.values("ttft_s").keys() == values.keys()


def test_who_got_nothing_is_not_drawn() -> None:
    table = requests([0, 1, 0, 1], [0] * 4)
    table.loc[table.tenant == 1, ["ttft_s", "tpot_s", "e2e_s"]] = np.nan
    (division,) = divisions(table, {})
    assert list(division.values("ttft_s")) == ["0"]
