"""Statistics as ``vllm bench serve`` computes them, but for the empty sample."""

from __future__ import annotations

from math import isnan

import numpy as np
import pytest

from servesim.results.statistics import describe, describe_runs


def test_a_sample_is_described_with_numpys_defaults() -> None:
    """1, 2, 3, 4: the deviations' squares sum to 5, over n = 4; p95 lies 0.85 of the way from 3 to 4."""
    got = describe(np.array([4.0, 1.0, 3.0, 2.0]))
    assert got["n"] == 4
    assert got["mean"] == 2.5
    assert got["std"] == np.sqrt(5 / 4)
    assert (got["min"], got["p50"], got["max"]) == (1.0, 2.5, 4.0)
    assert got["p95"] == pytest.approx(3.85)
    percentiles = ["p1", "p5", "p25", "p50", "p75", "p90", "p95", "p99"]
    assert list(got) == ["n", "mean", "std", "min", *percentiles, "max"]


def test_one_value_is_all_its_statistics() -> None:
    got = describe(np.array([3.0]))
    assert (got.pop("n"), got.pop("std")) == (1, 0.0)
    assert set(got.values()) == {3.0}


@pytest.mark.parametrize("got", [describe(np.empty(0)), describe_runs(lambda: iter(()))])
def test_an_empty_sample_has_no_mean(got: dict[str, float]) -> None:
    assert got.pop("n") == 0
    assert all(isnan(value) for value in got.values())
