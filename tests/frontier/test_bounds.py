"""No run beats a bound: neither a request its shortest latencies, nor a pool its least busy time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servesim import load, run
from servesim.frontier.bounds import alone, attainable, by_length, prompt_s, shortest_step_s
from servesim.frontier.capacity import busy_s, least_replicas
from servesim.frontier.traffic import drawn
from servesim.results.slo import Slo
from tests.costs import AffineStepTime

KINDS = {
    "static": (["scheduler=static", "scheduler.batch_size=8"], ["cluster"]),
    "continuous": (["scheduler=continuous"], ["cluster"]),
    "tight": (["scheduler.max_num_batched_tokens=700", "scheduler.max_num_seqs=24"], ["cluster"]),
    "little KV": (["scheduler.num_gpu_blocks_override=900"], ["cluster"]),
    "drafting": (["scheduler/speculation=eagle", "scheduler.speculation.acceptance=0.95"], ["cluster"]),
    "disaggregated": (["scheduler=disaggregated"], ["cluster.prefill", "cluster.decode"]),
    "handed over": (
        ["scheduler=disaggregated", "scheduler.first_token=prefill", "cluster.transfer.link=nic"],
        ["cluster.prefill", "cluster.decode"],
    ),
}


@settings(max_examples=40, deadline=None)
@given(
    kind=st.sampled_from(sorted(KINDS)),
    gpu=st.sampled_from(["h100-sxm", "l40s", "b200-sxm"]),
    calibration=st.sampled_from(["auto", "roofline"]),
    size=st.sampled_from([1, 2, 4]),
    rate=st.sampled_from([0.5, 10.0, 60.0, 500.0]),
    lengths=st.sampled_from(
        [
            ["workload/lengths=conversation"],
            ["workload/lengths=fixed", "workload.lengths.input=30", "workload.lengths.output=300"],
            ["workload/lengths=fixed", "workload.lengths.input=3000", "workload.lengths.output=1"],
            ["workload/lengths=geometric", "workload.lengths.input=900", "workload.lengths.output=60"],
        ]
    ),
    seed=st.integers(0, 3),
)
def test_no_run_beats_a_bound(
    kind: str, gpu: str, calibration: str, size: int, rate: float, lengths: list[str], seed: int
) -> None:
    overrides, pools = KINDS[kind]
    scenario = load(
        "model=llama3.1-8b",
        f"gpu={gpu}",
        f"calibration={calibration}",
        f"workload.arrivals.rate_rps={rate}",
        "workload.requests=120",
        f"seed={seed}",
        *overrides,
        *(f"{pool}.tensor_parallel_size={size}" for pool in pools),
        *lengths,
    )
    deployed, sent = scenario.deployments(), drawn(scenario.workload, seed)
    result = run(scenario)
    requests = result.requests.set_index("request_id").sort_index()
    done = requests["status"] == "completed"
    least = alone(scenario, deployed, sent)
    for name in ("ttft_s", "e2e_s"):
        assert (requests[name] >= getattr(least, name) * (1 - 1e-9))[done].all()
    several = done & (requests["output_tokens"] > 1)
    assert (requests["tpot_s"] >= least.tpot_s * (1 - 1e-9))[several].all()
    if done.all() and not result.summary["accounting"]["length_capped"]:
        used = result.summary["utilisation"]["roles"] or {"serve": result.summary["utilisation"]}
        for pool, bound in zip(deployed, busy_s(scenario, deployed, sent), strict=True):
            busy = used[pool.role]["busy"] * pool.replicas * result.summary["window_s"]
            assert busy >= bound * (1 - 1e-9)


def test_a_request_alone_by_hand() -> None:
    """10 ms a step, 1 ms per prompt token, 2 us per context token; 5 tokens in steps of 2: 2 + 2 + 1."""
    times = AffineStepTime(step_s=0.01, prefill_token_s=1e-3, context_s=2e-6)
    assert prompt_s(times, 5, 2) == pytest.approx(3 * 0.01 + 5e-3)
    assert shortest_step_s(times, 100) == pytest.approx(0.0102)
    assert shortest_step_s(AffineStepTime(step_s=0.01, context_s=1.0), 100) == pytest.approx(0.01)


@given(st.lists(st.integers(1, 100_000), min_size=1, max_size=50))
def test_a_length_takes_the_time_of_a_slightly_shorter_one(lengths: list[int]) -> None:
    taken = by_length(np.array(lengths), float)
    assert (taken <= lengths).all()
    assert (taken >= np.array(lengths) / 1.07 - 1).all()


def test_the_best_steady_part_counts() -> None:
    """The first half may be warm-up: of (bad, bad, good, bad, good, good) the last four have 3 in 4."""
    scenario = load("model=llama3.1-8b", "cluster.tensor_parallel_size=1", "workload.requests=6")
    least = alone(scenario, scenario.deployments(), drawn(scenario.workload, 0))
    ttft_s = np.array([2.0, 2.0, 0.1, 2.0, 0.1, 0.1])
    shares = attainable(Slo(ttft_s=1.0, tpot_s=10.0), least._replace(ttft_s=ttft_s))
    assert shares == {"ttft_s": 0.75, "tpot_s": 1.0, "slo": 0.75}


def test_replicas_by_hand() -> None:
    """100 replica-seconds in 10 s need 10 replicas; 5% of the work may be left over."""
    assert least_replicas([100.0, 1.0], 10.0) == (10, 1)
    assert least_replicas([100.0 / 0.95], 10.0) == (10,)
