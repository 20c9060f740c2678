"""Small runs of every kind: what their pictures have to hold is in their own tables."""

from functools import cache

from servesim import load, run
from servesim.report.run.saved import Run

SMALL = (
    "model=llama3.1-8b",
    "cluster.tensor_parallel_size=1",
    "workload.requests=120",
    "calibration=roofline",
)
TWO_POOLS = (
    "model=llama3.1-8b",
    "scheduler=disaggregated",
    "cluster.prefill.tensor_parallel_size=1",
    "cluster.decode.tensor_parallel_size=1",
    "cluster.decode.replicas=2",
    "workload.requests=120",
)
KINDS = {
    "continuous": (*SMALL, "cluster.tensor_parallel_size=2"),
    "static": (*SMALL, "scheduler=static"),
    "disaggregated": TWO_POOLS,
    "prefill_first": (*TWO_POOLS, "scheduler.first_token=prefill"),
    "preempting": (*SMALL, "scheduler.num_gpu_blocks_override=500", "workload.arrivals.rate_rps=30"),
    "cut": (*SMALL, "horizon_s=3", "workload.arrivals.rate_rps=60", "scheduler.max_num_seqs=8"),
    "closed": (*SMALL, "workload/arrivals=closed_loop", "workload.arrivals.concurrency=2"),
    "nothing_served": (*SMALL, "scheduler.max_model_len=16", "workload/lengths=fixed"),
}


@cache
def made(kind: str) -> Run:
    return Run.of(run(load(*KINDS[kind])))
