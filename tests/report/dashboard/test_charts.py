"""The dashboard's charts say what the answers say."""

import numpy as np
import pandas as pd
import pytest

from servesim import sweep
from servesim.report.dashboard.charts import distributions, drawing_of, of_sweep
from servesim.report.dashboard.loaded import Loaded
from servesim.report.dashboard.rescore import ATTAINMENT, LEAST, MOST, Judge, judged
from servesim.report.frontier.drawing import Sweep
from servesim.report.run.latency import LATENCIES

TABLE = sweep(
    ["calibration=roofline", "workload.requests=80"],
    ["cluster.replicas=1,2", "workload.arrivals.rate_rps=4,16"],
    seeds=2,
    n_jobs=1,
)
LIMITS = {"ttft_s": 0.06, "tpot_s": 0.02}


@pytest.mark.parametrize("latency", LATENCIES)
def test_a_distribution_ends_at_the_longest_time_and_at_all_requests(latency: object) -> None:
    times = {
        letter: pd.DataFrame({name: at * np.arange(1, 40) for name in ("ttft_s", "tpot_s", "e2e_s")})
        for letter, at in (("A", 0.01), ("B", 0.02))
    }
    figure = distributions(times, latency, 0.1)
    assert [trace.name for trace in figure.data] == ["A", "B"]
    for trace, longest_s in zip(figure.data, (0.39, 0.78), strict=True):
        assert trace.x[-1] == pytest.approx(latency.scale * longest_s)
        assert trace.y[-1] == 1
        assert (np.diff(trace.y) > 0).all()
    (line,) = figure.layout.shapes
    assert line.x0 == latency.scale * 0.1


def test_what_is_known_within_bounds_is_drawn_and_told_with_them() -> None:
    table = judged(TABLE, Judge(LIMITS, 0.99))
    points = drawing_of(Sweep(table, "x")).points
    means = table.groupby(["cluster.replicas", "workload.arrivals.rate_rps"])[
        [ATTAINMENT + LEAST, ATTAINMENT + MOST]
    ]
    assert points[[f"{ATTAINMENT}.low", f"{ATTAINMENT}.high"]].to_numpy() == pytest.approx(
        means.mean().to_numpy()
    )
    assert (points[f"{ATTAINMENT}.low"] < points[f"{ATTAINMENT}.high"]).any()
    assert any(
        "SLO met by" in text and "[" in text.partition("SLO met by")[2].partition("<br>")[0]
        for text in points.text
    )


@pytest.mark.parametrize(("limits", "said"), [(LIMITS, "bounds"), ({}, "Exact")])
def test_the_charts_of_a_sweep_say_whether_the_shares_are_exact(limits: dict[str, float], said: str) -> None:
    drawing, charts = of_sweep(Loaded(Sweep(TABLE, "x")), Judge(limits, 0.99))
    assert [chart.title for chart in charts][2:] == ["SLO attainment against load", "Goodput against load"]
    assert said in charts[2].caption
    assert charts[0].figure.layout.meta == tuple(commands[0] for commands in drawing.points.commands)
