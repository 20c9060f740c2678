"""The dashboard's charts say what the answers say."""

import pytest

from servesim import sweep
from servesim.report.dashboard.charts import drawing_of, of_sweep
from servesim.report.dashboard.loaded import Loaded
from servesim.report.dashboard.rescore import ATTAINMENT, LEAST, MOST, Judge, judged
from servesim.report.frontier.drawing import Sweep

TABLE = sweep(
    ["calibration=roofline", "workload.requests=80"],
    ["cluster.replicas=1,2", "workload.arrivals.rate_rps=4,16"],
    seeds=2,
    n_jobs=1,
)
LIMITS = {"ttft_s": 0.06, "tpot_s": 0.02}


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
