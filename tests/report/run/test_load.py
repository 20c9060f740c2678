"""What is drawn over time adds up to what the summary tells."""

import numpy as np
import pytest

from servesim.report.run.bins import edges
from servesim.report.run.load import load_over_time, queue_figure, utilisation_figure, waiting_over_time
from tests.report.run.runs import KINDS, made

SERVED = [kind for kind in KINDS if kind != "nothing_served"]


@pytest.mark.parametrize("kind", SERVED)
def test_means_of_the_bins_are_the_summary_s(kind: str) -> None:
    run = made(kind)
    used = run.summary["utilisation"]
    for pool in run.pools:
        table, own = load_over_time(run, pool), used["roles"][pool.role] if used["roles"] else used
        told = {"busy": "busy", "compute": "compute", "bandwidth": "bandwidth", "kv": "kv_cache"}
        for column, name in told.items():
            assert table[column].mean() == pytest.approx(own[name], rel=1e-9), (pool.role, column)
        assert table.busy.max() <= 1 + 1e-9


@pytest.mark.parametrize("kind", SERVED)
def test_amounts_of_the_bins_are_the_run_s(kind: str) -> None:
    run = made(kind)
    at = edges(*run.span)
    width, inside = at[1] - at[0], run.steps.end_s <= at[-1] + 1e-9
    if not inside.all():
        assert kind == "cut"
        return
    flops = sum(
        load_over_time(run, pool).compute.sum() * width * pool.gpus * pool.peak_flops_per_s
        for pool in run.pools
    )
    sequences = sum(load_over_time(run, pool).sequences.sum() * width * pool.replicas for pool in run.pools)
    assert flops == pytest.approx(run.steps.flops.sum(), rel=1e-9)
    assert sequences == pytest.approx((run.steps.sequences * run.steps.seconds).sum(), rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_the_queue_is_what_requests_waited(kind: str) -> None:
    run = made(kind)
    at, series = edges(*run.span), waiting_over_time(run)
    requests = run.requests[run.requests.status != "dropped"]
    waited = requests.queue_s.fillna(at[-1] - requests.sent_s)
    assert series.sum() * (at[1] - at[0]) == pytest.approx(waited.sum(), rel=1e-9, abs=1e-9)


def test_a_line_is_the_table() -> None:
    run = made("disaggregated")
    loads = {pool.title: load_over_time(run, pool) for pool in run.pools}
    drawn = {trace.name: trace for trace in utilisation_figure(loads["decode pool"], run.span[1]).data}
    np.testing.assert_array_equal(drawn["bandwidth"].y[:-1], loads["decode pool"].bandwidth)
    names = [trace.name for trace in queue_figure(waiting_over_time(run), loads, run.span[1]).data]
    assert names == ["waiting for their first step", "waiting in the decode pool"]
