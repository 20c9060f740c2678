"""More replicas or more bandwidth serve the same traffic no worse, beyond what chance allows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

import servesim
from servesim.cluster.pools import PrefillDecode
from servesim.scenario import Scenario
from servesim.workload.arrivals import Poisson
from servesim.workload.lengths import Lognormal
from servesim.workload.synthetic import Synthetic
from tests.intervals import Interval, mean_interval
from tests.laws.cases import KINDS

SEEDS = range(20)
CONFIDENCE = 0.95
LENGTHS = Lognormal(input=800.0, output=80.0)
LIGHT_RPS, HEAVY_RPS, FLOOD_RPS = 3.0, 40.0, 1000.0


@cache
def scenario(kind: str, rate_rps: float) -> Scenario:
    """Return a scenario whose KV cache is of 1,200 blocks a replica, whatever its GPUs."""
    base = servesim.load(
        f"scheduler={kind}", "scheduler.num_gpu_blocks_override=1200", "calibration=roofline"
    )
    requests = 60 if rate_rps == FLOOD_RPS else 30
    return replace(base, workload=Synthetic(Poisson(rate_rps), LENGTHS, requests=requests))


def more_bandwidth(base: Scenario) -> Scenario:
    """Return the scenario with 25% more HBM bandwidth."""
    return replace(base, gpu=replace(base.gpu, hbm_bytes_per_s=1.25 * base.gpu.hbm_bytes_per_s))


def one_more_replica(base: Scenario) -> Scenario:
    """Return the scenario with another replica in each pool."""
    cluster = base.cluster
    if isinstance(cluster, PrefillDecode):
        pools = {name: getattr(cluster, name) for name in ("prefill", "decode")}
        more = {name: replace(pool, replicas=pool.replicas + 1) for name, pool in pools.items()}
        return replace(base, cluster=replace(cluster, **more))
    return replace(base, cluster=replace(cluster, replicas=cluster.replicas + 1))


IMPROVEMENTS = {"bandwidth": more_bandwidth, "replica": one_more_replica}
Improvement = Callable[[Scenario], Scenario]


@cache
def mean_e2e_s(base: Scenario) -> float:
    """Return the mean E2E of a run."""
    mean: float = servesim.run(base).summary["latency"]["e2e_s"]["mean"]
    return mean


@cache
def tokens_per_s(base: Scenario) -> float:
    """Return the tokens that a run emits per second."""
    rate: float = servesim.run(base).summary["throughput"]["output_tokens_per_s"]
    return rate


def change(measure: Callable[[Scenario], float], base: Scenario, improve: Improvement) -> Interval:
    """Return by how much an improvement changes a measure: the interval of its paired differences.

    Request i has the same length and the same place in the traffic in both runs of a pair.
    """
    pairs = [(replace(base, seed=seed), replace(improve(base), seed=seed)) for seed in SEEDS]
    return mean_interval([measure(after) - measure(before) for before, after in pairs], CONFIDENCE)


@pytest.mark.parametrize("name", IMPROVEMENTS)
@pytest.mark.parametrize("kind", KINDS)
def test_e2e_shrinks_under_load(kind: str, name: str) -> None:
    """Mean E2E at 40 requests/s, over 20 seeds, 95% interval."""
    assert change(mean_e2e_s, scenario(kind, HEAVY_RPS), IMPROVEMENTS[name]).high < 0


@pytest.mark.parametrize("kind", KINDS)
def test_an_idle_replica_does_no_harm(kind: str) -> None:
    """Mean E2E at 3 requests/s: no longer, beyond the 95% interval, with a replica that is hardly needed."""
    assert change(mean_e2e_s, scenario(kind, LIGHT_RPS), one_more_replica).low <= 0


@pytest.mark.parametrize("name", IMPROVEMENTS)
@pytest.mark.parametrize("kind", KINDS)
def test_saturation_throughput_grows(kind: str, name: str) -> None:
    """Tokens per second when more is sent than can be served, over 20 seeds, 95% interval."""
    assert change(tokens_per_s, scenario(kind, FLOOD_RPS), IMPROVEMENTS[name]).low > 0
