"""Latencies of each configuration, and of each group of its requests."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("dash", reason="needs dash, of the extra dashboard")

from servesim.report.dashboard.distributions import Line, distributions, of_groups, of_letters
from servesim.report.dashboard.whatif import Answer
from servesim.report.run.latency import LATENCIES, Latency

COUNT, TWO = 40, (("A", 0.01), ("B", 0.02))
LIMITS = {"ttft_s": 0.1, "tpot_s": None}


def answer(scale: float, tenants: int) -> Answer:
    """Return one whose requests are of some tenants in turn."""
    times = pd.DataFrame({name: scale * np.arange(1, COUNT + 1) for name in ("ttft_s", "tpot_s", "e2e_s")})
    summary = {"scenario": {"workload": {"tenants": {"paid": {}, "free": {}}}}}
    return Answer((), summary, times.assign(tenant=np.arange(COUNT) % tenants, priority=0))


@pytest.mark.parametrize("latency", LATENCIES)
def test_a_distribution_ends_at_the_longest_time_and_at_all_requests(latency: Latency) -> None:
    lines = [
        Line(letter, at * pd.Series(range(1, COUNT)), hue, hue)
        for letter, at, hue in (("A", 0.01, 0), ("B", 0.02, 1))
    ]
    figure = distributions(lines, latency, 0.1)
    assert [trace.name for trace in figure.data] == ["A", "B"]
    for trace, longest_s in zip(figure.data, (0.39, 0.78), strict=True):
        assert trace.x[-1] == pytest.approx(latency.scale * longest_s)
        assert trace.y[-1] == 1
        assert (np.diff(trace.y) > 0).all()
    (line,) = figure.layout.shapes
    assert line.x0 == latency.scale * 0.1


def test_each_configuration_has_a_line_for_each_tenant() -> None:
    answers = {"A": answer(0.01, 2), "B": answer(0.02, 2)}
    charts = [*of_groups(answers, LIMITS)]
    assert [chart.title for chart in charts] == [
        "TTFT by tenant, limit 100 ms",
        "TPOT by tenant",
        "E2E by tenant",
    ]
    for chart in charts:
        assert [trace.name for trace in chart.figure.data] == ["A paid", "A free", "B paid", "B free"]
        colours = [trace.line.color for trace in chart.figure.data]
        assert colours[:2] == colours[2:], "of one tenant, one colour"
        assert colours[0] != colours[1]
        assert len({trace.line.dash for trace in chart.figure.data}) == 2
    paid = answers["A"].times.query("tenant == 0")
    np.testing.assert_array_equal(charts[2].figure.data[0].x, paid.e2e_s)


def test_one_configuration_may_have_tenants_where_the_other_has_none() -> None:
    (chart, *_) = of_groups({"A": answer(0.01, 1), "B": answer(0.02, 2)}, LIMITS)
    assert [trace.name for trace in chart.figure.data] == ["B paid", "B free"]


def test_without_tenants_there_are_no_groups() -> None:
    one = {"A": answer(0.01, 1)}
    assert [*of_groups(one, LIMITS)] == []
    assert len([*of_letters(one, LIMITS)]) == len(LATENCIES)
