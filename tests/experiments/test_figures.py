"""The closed forms beside the runs of a study, and what a study's figure counts."""

import pandas as pd
import pytest

from servesim.cluster.deployment import Deployment
from servesim.config.loading import load
from servesim.engine.continuous import Continuous
from tests.shared import ROOT

if not (ROOT / "experiments").is_dir():
    pytest.skip("the studies come with a clone only", allow_module_level=True)

from experiments.kv_tiers.figure import LINKS, NEW, computing_s, loading_s
from experiments.overload.figure import ends
from experiments.pictures import steady
from experiments.preemption.figure import recompute_s, swap_s


@pytest.fixture(scope="module")
def pool() -> Deployment:
    (found,) = load("model=llama3.1-8b", "cluster.replicas=1", "cluster.tensor_parallel_size=1").deployments()
    return found


def saved_s(pool: Deployment, found: int) -> float:
    """Return the computing that tokens which are found save."""
    return computing_s(pool, found + NEW) - computing_s(pool, NEW, found)


def test_fast_links_beat_computing_at_any_length_and_a_slow_one_only_at_great_ones(pool: Deployment) -> None:
    for found in (250, 4000, 40_000, 120_000):
        for name in ("host", "host and store"):
            assert loading_s(pool, found, *LINKS[name]) < saved_s(pool, found)
    slow = LINKS["slow store"]
    assert loading_s(pool, 40_000, *slow) > saved_s(pool, 40_000)
    assert loading_s(pool, 50_000, *slow) < saved_s(pool, 50_000)


def test_the_links_are_those_of_the_options(pool: Deployment) -> None:
    scheduler = load("scheduler/offload=host_and_store").scheduler
    assert isinstance(scheduler, Continuous)
    assert scheduler.offload is not None
    host, store = scheduler.offload.host, scheduler.offload.store
    assert host is not None
    assert store is not None
    assert LINKS["host"] == (host.latency_s, host.bandwidth(pool.gpu.pcie_bytes_per_s))
    assert LINKS["host and store"] == (store.latency_s, store.bandwidth(pool.gpu.nic_bytes_per_s))


@pytest.mark.parametrize(("tokens", "gigabytes_per_s"), [(750, 14), (2000, 12), (8000, 10)])
def test_where_swapping_and_recomputing_are_equal(
    pool: Deployment, tokens: int, gigabytes_per_s: float
) -> None:
    assert swap_s(pool, tokens, 1e9 * gigabytes_per_s) == pytest.approx(recompute_s(pool, tokens), rel=0.05)


def test_every_attempt_ends_in_one_way() -> None:
    """100 requests, sent 40 times more; 60 of the 140 complete, half of them in time, and 30 time out."""
    counts = {"injected": 140.0, "completed": 60.0, "timed_out": 30.0, "retries": 40.0}
    row = {f"accounting.{name}": [count] for name, count in counts.items()}
    row |= {"goodput.requests_per_s": [2.0], "throughput.requests_per_s": [4.0]}
    found = ends(pd.DataFrame({"variant": ["a"], **row})).loc["a"]
    assert found.to_dict() == {"within the SLO": 0.3, "late": 0.3, "timed out": 0.3, "turned away": 0.5}


def test_a_drawing_has_the_same_names_whatever_lot_they_were_drawn_by() -> None:
    drawn = [
        f'<clipPath id="legend{one}"/><clipPath id="legend2{other}"/><use href="#legend2{other}"/>'
        for one, other in (("2abcde", "0f3a5c"), ("123456", "2bcdef"))
    ]
    assert steady(drawn[0]) == steady(drawn[1])
