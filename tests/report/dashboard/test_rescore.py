"""A sweep judged anew: exact where rows are at hand, and bounds that hold where only percentiles are."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim import load, run
from servesim.report.dashboard.rescore import (
    ATTAINMENT,
    GOOD,
    LEAST,
    MET,
    MOST,
    PER_GPU,
    Judge,
    judged,
    within,
)
from servesim.results.statistics import describe
from servesim.sweeps.flat import flatten

OVERRIDES = (
    "calibration=roofline",
    "workload.requests=300",
    "workload.arrivals.rate_rps=9",
)
LIMITS = st.floats(1e-4, 2.0)


def row_of(*overrides: str) -> dict[str, object]:
    result = run(load(*OVERRIDES, *overrides))
    return {"point": 0, "variant": "", "seed": 0, "status": "clean", **flatten(result.summary)}


RESULT = run(load(*OVERRIDES))
ROW = {"point": 0, "variant": "", "seed": 0, "status": "clean", **flatten(RESULT.summary)}
TABLE = pd.DataFrame([ROW])
TIMES = RESULT.requests


@given(LIMITS, LIMITS)
def test_the_bounds_hold_the_share_of_the_requests(ttft_s: float, tpot_s: float) -> None:
    judge = Judge({"ttft_s": ttft_s, "tpot_s": tpot_s}, 0.9)
    (bounds,) = judged(TABLE, judge).to_dict("records")
    (exact,) = judged(TABLE, judge, [TIMES]).to_dict("records")
    share = ((TIMES.ttft_s <= ttft_s) & (TIMES.tpot_s.fillna(0.0) <= tpot_s)).mean()
    assert exact[ATTAINMENT] == exact[ATTAINMENT + LEAST] == pytest.approx(share)
    for name in (ATTAINMENT, GOOD, PER_GPU):
        assert bounds[name + LEAST] <= exact[name] + 1e-12
        assert exact[name] <= bounds[name + MOST] + 1e-12
    assert bounds[MET] in (exact[MET], None)


@given(LIMITS, LIMITS, st.floats(1.0, 3.0))
def test_looser_limits_are_met_by_no_fewer(ttft_s: float, tpot_s: float, factor: float) -> None:
    tight, loose = (
        judged(TABLE, Judge({"ttft_s": ttft_s * by, "tpot_s": tpot_s * by}, 0.9)).iloc[0]
        for by in (1.0, factor)
    )
    for end in (LEAST, MOST):
        assert tight[ATTAINMENT + end] <= loose[ATTAINMENT + end] + 1e-12


@pytest.mark.parametrize("slo", ["interactive", "relaxed", "batch"])
def test_the_limits_of_the_run_give_its_own_figures(slo: str) -> None:
    row = row_of(f"slo={slo}")
    limits = {name: row[f"goodput.limits.{name}"] for name in ("ttft_s", "tpot_s", "e2e_s")}
    (again,) = judged(pd.DataFrame([row]), Judge(limits, row["goodput.target"])).to_dict("records")
    for name in (ATTAINMENT, GOOD, PER_GPU):
        expected = np.nan if row[name] is None else row[name]
        assert again[name] == pytest.approx(expected, nan_ok=True)
        assert again[name + LEAST] == pytest.approx(again[name + MOST], nan_ok=True)
    assert again[MET] == row[MET]


@pytest.mark.parametrize("slo", [(0.05, 0.02), (0.5, 0.015), (3.0, 1.0)])
def test_rows_give_what_a_run_with_those_limits_gives(slo: tuple[float, float]) -> None:
    ttft_s, tpot_s = slo
    expected = row_of(f"slo.ttft_s={ttft_s}", f"slo.tpot_s={tpot_s}")
    (again,) = judged(TABLE, Judge({"ttft_s": ttft_s, "tpot_s": tpot_s}, 0.99), [TIMES]).to_dict("records")
    for name in (ATTAINMENT, GOOD, PER_GPU):
        assert again[name] == pytest.approx(expected[name])
    assert again[MET] == expected[MET]
    assert again["cost.usd_per_good_request"] == pytest.approx(expected["cost.usd_per_good_request"])


@pytest.mark.parametrize("more", [["steady=true"], ["horizon_s=20"], ["steady=true", "horizon_s=20"]])
def test_rows_of_a_part_of_a_run_give_what_a_run_with_those_limits_gives(more: list[str]) -> None:
    """Of a steady part those sent in it are a share, and those that end in it are done per second."""
    limits = {"ttft_s": 0.4, "tpot_s": 0.02}
    expected = row_of(*more, *(f"slo.{name}={limit}" for name, limit in limits.items()))
    result = run(load(*OVERRIDES, *more))
    table = pd.DataFrame([{"status": "clean", **flatten(result.summary)}])
    (again,) = judged(table, Judge(limits, 0.99), [result.requests]).to_dict("records")
    for name in (ATTAINMENT, GOOD, PER_GPU):
        assert again[name] == pytest.approx(expected[name])
    (bounds,) = judged(table, Judge(limits, 0.99)).to_dict("records")
    assert bounds[ATTAINMENT + LEAST] - 1e-12 <= expected[ATTAINMENT] <= bounds[ATTAINMENT + MOST] + 1e-12  # type: ignore[operator]


def test_a_price_gives_what_a_run_at_that_price_costs() -> None:
    expected = row_of("pricing.usd_per_gpu_hour=1.25")
    (again,) = judged(TABLE, Judge({}, 0.99, 1.25)).to_dict("records")
    for name in [name for name in expected if name.startswith("cost.")]:
        assert again[name] == pytest.approx(expected[name])


@given(st.lists(st.floats(0.0, 10.0), min_size=1, max_size=60), st.floats(0.0, 10.0))
def test_a_count_lies_between_what_percentiles_say(values: list[float], limit: float) -> None:
    row = {f"latency.ttft_s.{name}": value for name, value in describe(np.array(values)).items()}
    low, high = within(row, "ttft_s", limit, len(values))
    assert low <= sum(value <= limit for value in values) <= high


def test_points_without_figures_stay_without() -> None:
    failed = {"point": 1, "variant": "", "seed": 1, "status": "failed", "error": "does not fit"}
    table = pd.DataFrame([ROW, failed])
    again = judged(table, Judge({"ttft_s": 0.1}, 0.9, 2.0))
    assert again[[ATTAINMENT, MET, "cost.usd"]].iloc[1].isna().all()
    assert again[ATTAINMENT].notna().iloc[0]
