"""What limits a cluster, where it was built to be limited by one thing."""

import pytest

from servesim import load, run
from servesim.frontier.limits import Limit, limit

ONE = ["model=llama3.1-8b", "cluster.tensor_parallel_size=1", "cluster.replicas=1"]
TWO = ["model=llama3.1-8b", "scheduler=disaggregated"]
TWO += ["cluster.prefill.tensor_parallel_size=1", "cluster.decode.tensor_parallel_size=1"]
FIXED = "workload/lengths=fixed"


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        (
            [*ONE, "scheduler.num_gpu_blocks_override=700", "workload.arrivals.rate_rps=12"],
            Limit("ttft", "KV memory", "serve"),
        ),
        (
            [*ONE, "scheduler=static", "scheduler.num_gpu_blocks_override=1200"],
            Limit("ttft", "KV memory", "serve"),
        ),
        (
            [*ONE, "calibration=roofline", FIXED, "workload.lengths.input=4000", "workload.lengths.output=2"],
            Limit("ttft", "compute", "serve"),
        ),
        (
            [*ONE, "calibration=roofline", FIXED, "workload.lengths.input=16", "slo.tpot_s=0.003"],
            Limit("tpot", "bandwidth", "serve"),
        ),
        (
            [*ONE, "engine_overhead.step_s=0.2", "workload.arrivals.rate_rps=5"],
            Limit("tpot", "host", "serve"),
        ),
        (
            ["cluster.replicas=1", "gpu.nvlink_bytes_per_s=1e9", "workload.arrivals.rate_rps=0.02"],
            Limit("ttft", "links", "serve"),
        ),
        ([*TWO, "cluster.transfer.bandwidth_bytes_per_s=1e9"], Limit("ttft", "transfer", None)),
        (
            [*TWO, FIXED, "workload.lengths.input=6000", "workload.lengths.output=2"],
            Limit("ttft", "compute", "prefill"),
        ),
        ([*TWO, "slo.ttft_s=null", "slo.tpot_s=0.004"], Limit("tpot", "bandwidth", "decode")),
        (
            [*TWO, "scheduler.num_gpu_blocks_override=1200", FIXED, "workload.lengths.output=800"],
            Limit("ttft", "KV memory", "decode"),
        ),
    ],
)
def test_the_bottleneck_is_named(overrides: list[str], expected: Limit) -> None:
    scenario = load("workload.arrivals.rate_rps=30", "workload.requests=400", "steady=true", *overrides)
    assert limit(scenario, run(scenario)) == expected


def test_where_no_limit_is_missed_it_is_the_queue() -> None:
    scenario = load(*ONE, "slo=batch", "slo.e2e_s=1e6", "workload.arrivals.rate_rps=200", "steady=true")
    found = limit(scenario, run(scenario))
    assert (found.symptom, found.role) == ("queue", "serve")
