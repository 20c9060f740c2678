"""One run, described whole: what is wrong between its components, and what they make together."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

import servesim
from servesim.check import Problem, problems
from servesim.cluster.pools import Pool, PrefillDecode
from servesim.cluster.router import RoundRobin
from servesim.engine.continuous import Continuous
from servesim.engine.static import SLICE_TOKENS
from servesim.scenario import Scenario


def test_runs_that_differ_in_their_traffic_alone_share_step_times() -> None:
    first, other, elsewhere = (
        servesim.load(*each).deployments()[0].step_time
        for each in ((), ("workload.arrivals.rate_rps=9",), ("gpu=h200-sxm",))
    )
    assert first is other
    assert first is not elsewhere


@cache
def scenario(kind: str = "continuous") -> Scenario:
    """Return the default scenario of a scheduler."""
    return servesim.load(f"scheduler={kind}")


def scheduled(base: Scenario, **limits: Any) -> Scenario:
    """Return a scenario with other limits of its scheduler."""
    return replace(base, scheduler=replace(base.scheduler, **limits))


def pooled(base: Scenario, **shape: Any) -> Scenario:
    """Return a scenario with another shape of its pool."""
    return replace(base, cluster=replace(base.cluster, **shape))


def found(wrong: Scenario) -> list[Problem]:
    """Return the problems of a scenario."""
    return list(problems(wrong))


def only_problem(wrong: Scenario) -> Problem:
    """Return the one problem of a scenario."""
    (problem,) = found(wrong)
    return problem


# ---- problems --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["continuous", "static", "disaggregated"])
def test_defaults_have_no_problems(kind: str) -> None:
    assert found(scenario(kind)) == []


def test_scheduler_and_cluster_must_go_together() -> None:
    split, whole = scenario("disaggregated"), scenario("continuous")
    assert "needs prefill and decode pools" in str(only_problem(replace(split, cluster=whole.cluster)))
    assert "needs one pool" in str(only_problem(replace(whole, cluster=split.cluster)))


def test_tensor_parallelism_must_divide_the_heads() -> None:
    wrong = found(pooled(scenario(), tensor_parallel_size=3))
    assert {(problem.path, problem.value) for problem in wrong} == {("cluster.tensor_parallel_size", 3)}
    assert "must divide the 64 query heads" in str(wrong[0])


def test_both_pools_are_looked_at() -> None:
    base = scenario("disaggregated")
    assert isinstance(base.cluster, PrefillDecode)
    wrong = pooled(base, prefill=Pool(tensor_parallel_size=3), decode=Pool(tensor_parallel_size=5))
    assert {(problem.path, problem.value) for problem in found(wrong)} == {
        ("cluster.prefill.tensor_parallel_size", 3),
        ("cluster.decode.tensor_parallel_size", 5),
    }


def test_a_model_that_does_not_fit_is_shown_as_a_sum() -> None:
    big = servesim.load("model=llama3.1-405b", "cluster.tensor_parallel_size=8").model
    problem = only_problem(replace(pooled(scenario(), tensor_parallel_size=1), model=big))
    assert problem.path == "cluster"
    for words in (
        "llama3.1-405b does not fit on 1 GPU(s)",
        "GPU memory",
        "weights",
        "activations",
        "KV cache",
    ):
        assert words in problem.message


def test_it_says_on_how_many_gpus_the_model_does_fit() -> None:
    base = pooled(scenario(), tensor_parallel_size=1)
    big = servesim.load("model=llama3.1-405b", "cluster.tensor_parallel_size=8").model
    assert "(tensor_parallel_size=8 fits;" in only_problem(replace(base, model=big)).message
    assert found(replace(pooled(base, tensor_parallel_size=8), model=big)) == []
    tiny = replace(base.gpu, memory_bytes=10**9)
    assert "(no number of GPUs of a node fits;" in only_problem(replace(base, gpu=tiny)).message


def test_a_what_if_may_ignore_the_capacity() -> None:
    tiny = replace(scenario().gpu, memory_bytes=10**9)
    assert found(replace(scenario(), gpu=tiny))
    what_if = replace(scenario(), gpu=tiny, ignore_capacity=True)
    assert found(what_if) == []
    (pool,) = what_if.deployments()
    longest = what_if.model.max_position_embeddings
    assert pool.max_model_len == longest
    assert pool.kv_blocks == what_if.scheduler.max_num_seqs * longest // 16, (
        "room for every sequence there may be"
    )


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"max_model_len": 200_000}, "must be at most the model's 131072"),
        (
            {"max_model_len": 100_000, "num_gpu_blocks_override": 1000},
            "must be at most the 16000 that the KV cache",
        ),
    ],
)
def test_max_model_len_must_be_served(limits: dict[str, int], message: str) -> None:
    problem = only_problem(scheduled(scenario(), **limits))
    assert (problem.path, problem.value) == ("scheduler.max_model_len", limits["max_model_len"])
    assert message in problem.message


def test_whole_prompts_must_fit_into_a_step() -> None:
    problem = only_problem(scheduled(scenario(), enable_chunked_prefill=False))
    assert (problem.path, problem.value) == ("scheduler.max_num_batched_tokens", 8192)
    fitting = scheduled(scenario(), enable_chunked_prefill=False, max_model_len=8192)
    assert found(fitting) == []
    assert only_problem(scheduled(fitting, max_model_len=8193)).path == "scheduler.max_num_batched_tokens"


def test_no_step_with_a_prompt_keeps_to_a_target_that_one_token_misses() -> None:
    """Everything would be computed token by token, and nothing of it beside a decode."""
    least_s = scenario().deployments()[0].step_time.mixed(0, 0, [(1, 0)])
    problem = only_problem(scheduled(scenario(), step_target_s=0.999 * least_s))
    assert problem.path == "scheduler.step_target_s"
    assert f"one of a single token takes {least_s:.3g} s" in problem.message
    assert found(scheduled(scenario(), step_target_s=least_s)) == []


def test_problems_of_components_come_with_their_path() -> None:
    wrong = scheduled(replace(scenario(), seed=-1, horizon_s=0.0), block_size=0)
    assert [problem.path for problem in found(wrong)] == ["scheduler.block_size", "seed", "horizon_s"]


# ---- deployments -----------------------------------------------------------------------------------


def test_one_pool_is_one_deployment() -> None:
    (pool,) = scenario().deployments()
    assert (pool.role, pool.replicas, pool.tensor_parallel_size, pool.gpus, pool.first_replica) == (
        "serve",
        2,
        4,
        8,
        0,
    )
    assert pool.kv_blocks == pool.sheet.blocks > 0
    assert pool.kv_bytes_per_token == 2 * 80 * 8 * 128 * 2, "K and V, 80 layers, 8 heads of 128, two bytes"


def test_prefill_replicas_come_first() -> None:
    base = pooled(scenario("disaggregated"), prefill=Pool(3, 4), decode=Pool(2, 8))
    prefill, decode = base.deployments()
    assert (prefill.role, prefill.first_replica, prefill.gpus) == ("prefill", 0, 12)
    assert (decode.role, decode.first_replica, decode.gpus) == ("decode", 3, 16)
    assert decode.sheet.blocks > prefill.sheet.blocks
    assert prefill.kv_bytes_per_token == decode.kv_bytes_per_token, "a transfer moves the whole model's KV"


def test_a_pool_may_have_gpus_of_its_own() -> None:
    other = replace(scenario().gpu, name="other", hbm_bytes_per_s=2 * scenario().gpu.hbm_bytes_per_s)
    prefill, decode = pooled(scenario("disaggregated"), decode=Pool(1, 4, gpu=other)).deployments()
    assert (prefill.gpu.name, decode.gpu.name) == ("h100-sxm", "other")
    assert decode.step_time.mixed(8, 9000, ()) < prefill.step_time.mixed(8, 9000, ())


def test_auto_max_model_len_is_what_model_and_cache_allow() -> None:
    (roomy,) = scenario().deployments()
    (tight,) = scheduled(scenario(), num_gpu_blocks_override=100, block_size=32).deployments()
    (given,) = scheduled(scenario(), max_model_len=5000).deployments()
    assert (roomy.max_model_len, tight.max_model_len, given.max_model_len) == (131_072, 3200, 5000)


def test_a_static_batch_keeps_activations_of_a_slice() -> None:
    """Its prompts are as long as they are; they run through the layers in slices of 8,192 tokens."""
    base = scenario("static")
    (static,) = scheduled(base, batch_size=64).deployments()
    limits = Continuous(max_num_seqs=64, max_num_batched_tokens=SLICE_TOKENS)
    (continuous,) = replace(base, scheduler=limits).deployments()
    assert static.sheet == continuous.sheet


def test_kv_in_fp8_halves_what_a_token_takes() -> None:
    (bf16,) = scenario().deployments()
    (fp8,) = scheduled(scenario(), kv_cache_dtype="fp8").deployments()
    assert 2 * fp8.kv_bytes_per_token == bf16.kv_bytes_per_token
    assert fp8.kv_blocks == pytest.approx(2 * bf16.kv_blocks, abs=1)


# ---- as plain values -------------------------------------------------------------------------------


def test_a_scenario_as_plain_values() -> None:
    plain = scenario("disaggregated").as_dict()
    assert plain["version"] == servesim.__version__
    assert plain["scheduler"]["kind"] == "disaggregated"
    assert plain["cluster"]["kind"] == "prefill_decode"
    assert plain["cluster"]["prefill"]["replicas"] == 1
    assert plain["workload"]["arrivals"] == {"kind": "poisson", "rate_rps": 4.0}
    assert plain["horizon_s"] is None


def test_a_component_of_the_users_own() -> None:
    """It is named by its class."""

    class MyRouter(RoundRobin):
        """Round robin under another name."""

    assert replace(scenario(), router=MyRouter()).as_dict()["router"] == {"kind": "my_router"}
