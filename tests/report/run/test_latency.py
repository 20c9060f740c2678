"""Distributions and courses of latencies."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim.report.run.latency import (
    BINS,
    FEWEST,
    LATENCIES,
    MOST_POINTS,
    NEAR,
    cdf,
    distribution,
    over_time,
    percentiles_over_time,
)
from tests.report.run.runs import KINDS, made

SAMPLES = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=200)


@given(SAMPLES)
def test_a_cdf_rises_to_one_and_counts_its_values(sample: list[float]) -> None:
    x, y = cdf(pd.Series(sample))
    assert np.all(np.diff(x) >= 0)
    assert np.all(np.diff(y) > 0)
    assert y[-1] == 1
    for value, share in zip(x, y, strict=True):
        assert share <= np.mean(np.array(sample) <= value)


def test_of_many_values_a_cdf_keeps_both_ends_and_stays_true() -> None:
    sample = np.random.default_rng(0).exponential(size=50_000)
    x, y = cdf(pd.Series(sample))
    assert len(x) <= MOST_POINTS
    ordered = np.sort(sample)
    np.testing.assert_array_equal(x[:100], ordered[:100])
    np.testing.assert_array_equal(x[-100:], ordered[-100:])
    np.testing.assert_allclose(y, np.searchsorted(ordered, x, side="right") / len(ordered))


@pytest.mark.parametrize("latency", LATENCIES, ids=lambda each: each.title)
def test_lines_of_a_distribution_are_at_the_percentiles_of_the_summary(latency: object) -> None:
    run = made("continuous")
    figure = distribution(run.requests[latency.column], latency, 0.5)  # type: ignore[attr-defined,arg-type]
    curve, *lines = figure.data
    told = run.summary["latency"][latency.column]  # type: ignore[attr-defined]
    assert max(curve.x) == pytest.approx(latency.scale * told["max"])  # type: ignore[attr-defined]
    wanted = [latency.scale * value for value in (told["p50"], told["p90"], told["p99"], 0.5)]  # type: ignore[attr-defined]
    assert [line.x[0] for line in lines] == pytest.approx(wanted)
    assert [line.name.split()[0] for line in lines] == ["p50", "p90", "p99", "limit"]


def test_bins_over_time_have_the_percentiles_of_their_requests() -> None:
    requests = pd.DataFrame({"sent_s": np.arange(60.0), "ttft_s": np.arange(60.0)})
    table = percentiles_over_time(requests, "ttft_s", (0.0, 60.0))
    assert list(table["median"]) == [9.5, 29.5, 49.5]
    assert list(table.p95) == pytest.approx([18.05, 38.05, 58.05])
    assert list(table.index) == [10, 30, 50]


def test_many_requests_do_not_make_more_bins() -> None:
    requests = pd.DataFrame({"sent_s": np.arange(9000.0), "ttft_s": 1.0})
    assert len(percentiles_over_time(requests, "ttft_s", (0.0, 9000.0))) == BINS


def test_a_bin_of_few_requests_has_no_percentiles() -> None:
    requests = pd.DataFrame({"sent_s": np.arange(FEWEST - 1.0), "ttft_s": 1.0})
    assert percentiles_over_time(requests, "ttft_s", (0.0, 10.0)).isna().all().all()


@pytest.mark.parametrize("kind", KINDS)
def test_points_are_the_requests(kind: str) -> None:
    run = made(kind)
    for latency in LATENCIES:
        points = over_time(run.requests, latency, run.span).data[0]
        known = run.requests[run.requests[latency.column] > 0].sort_values("sent_s", kind="stable")
        np.testing.assert_array_equal(points.x, known.sent_s)
        np.testing.assert_array_equal(points.y, latency.scale * known[latency.column])


def test_points_are_bounded() -> None:
    many = pd.DataFrame({"request_id": range(5000), "sent_s": np.arange(5000.0), "ttft_s": 1.0})
    many = many.assign(input_tokens=1, output_tokens=1)
    assert len(over_time(many, LATENCIES[0], (0.0, 5000.0)).data[0].x) == MOST_POINTS


@given(SAMPLES, st.floats(1e-6, 1e6))
def test_an_axis_shows_all_values_and_a_limit_that_is_near(sample: list[float], limit_s: float) -> None:
    """Values take at least a third of the axis's length where they spread by a factor of 3 or more."""
    values, each = pd.Series(sample), LATENCIES[2]
    low, high = each.scale_of(values, limit_s)["range"]
    assert low < np.log10(values.min())
    assert np.log10(values.max()) < high
    near = values.min() / NEAR <= limit_s <= values.max() * NEAR
    assert (low < np.log10(limit_s) < high) or not near
    assert ("out of sight" in each.limit(values, limit_s)) != near
    spread = np.log10(values.max() / values.min())
    assert spread < np.log10(3) or spread > (high - low) / 3


def test_a_limit_far_from_the_values_does_not_squeeze_them() -> None:
    figure = distribution(pd.Series([0.05, 0.1]), LATENCIES[0], 10.0)
    assert 10 ** figure.layout.xaxis.range[1] < 120
    assert figure.data[-1].name == "limit 10,000 ms, out of sight"
