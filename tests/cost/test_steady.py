"""The closed form of a closed loop, against counting and against the simulator."""

import pytest

from servesim import load, run
from servesim.cost.steady import prefill_chunks, steady
from tests.costs import AffineStepTime


def test_without_prefill_a_token_takes_a_decode_step() -> None:
    """10 ms and 1 us per context token; 4 sequences of 1,000 + 500 tokens: 16 ms."""
    times = AffineStepTime(step_s=0.01, context_s=1e-6)
    state = steady(times, concurrency=4, input_tokens=1000, output_tokens=1000, max_num_batched_tokens=8192)
    assert state.tpot_s == pytest.approx(0.016, rel=2e-3)
    assert state.decode_s == pytest.approx(0.016, rel=2e-3)
    assert state.prefill_s == 0


def test_the_prompts_of_the_others_delay_a_token() -> None:
    """Three others, each a prompt of 1,000 tokens (0.1 s) per cycle of 100 steps: 3 ms a token."""
    times = AffineStepTime(step_s=0.01, prefill_token_s=1e-4)
    state = steady(times, concurrency=4, input_tokens=1000, output_tokens=100, max_num_batched_tokens=8192)
    assert state.prefill_s == pytest.approx(0.1)
    assert state.prefills_per_step == pytest.approx(0.03)
    assert state.tpot_s == pytest.approx(0.013)


def test_alone_a_request_waits_for_nobody() -> None:
    times = AffineStepTime(step_s=0.01, prefill_token_s=1.0)
    state = steady(times, concurrency=1, input_tokens=9, output_tokens=9, max_num_batched_tokens=64)
    assert state.tpot_s == pytest.approx(0.01)


def test_a_long_prompt_is_computed_in_chunks() -> None:
    assert prefill_chunks(5000, 2048) == [(2048, 0), (2048, 2048), (904, 4096)]
    assert prefill_chunks(5, 8192) == [(5, 0)]


@pytest.mark.parametrize(("users", "prompt", "output"), [(8, 1024, 256), (32, 1024, 512), (64, 2048, 512)])
def test_the_simulator_agrees(users: int, prompt: int, output: int) -> None:
    """Lengths vary a little, as otherwise all requests stay in step and their prompts fall together."""
    scenario = load(
        "model=llama3.1-8b",
        "cluster.replicas=1",
        "cluster.tensor_parallel_size=1",
        "workload/arrivals=closed_loop",
        f"workload.arrivals.concurrency={users}",
        "workload/lengths=uniform",
        f"workload.lengths.input={prompt}",
        f"workload.lengths.output={output}",
        f"workload.requests={8 * users}",
        "steady=true",
    )
    tokens = scenario.scheduler.max_num_batched_tokens  # type: ignore[union-attr]
    closed = steady(
        scenario.deployments()[0].step_time,
        concurrency=users,
        input_tokens=prompt,
        output_tokens=output,
        max_num_batched_tokens=tokens,
    )
    assert closed.tpot_s == pytest.approx(run(scenario).summary["latency"]["tpot_s"]["mean"], rel=0.04)
