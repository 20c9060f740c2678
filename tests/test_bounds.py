"""Bounds of fields: no figure is accepted that the arithmetic of a run cannot stand."""

from dataclasses import fields, is_dataclass
from math import inf, nan

import pytest

import servesim
from servesim.check import ConfigError, Problem, problems
from servesim.cost.kernels.all_reduce import AllReduce
from servesim.cost.kernels.decode_attention import DecodeAttention
from servesim.cost.kernels.elementwise import Elementwise
from servesim.cost.kernels.gemm import Gemm
from servesim.cost.kernels.moe import Moe
from servesim.cost.kernels.prefill_attention import PrefillAttention

FORMS = (AllReduce, DecodeAttention, Elementwise, Gemm, Moe, PrefillAttention)

TOO_MUCH = [
    "scheduler.max_num_seqs=1000000000",
    "scheduler.max_num_batched_tokens=1000000000",
    "scheduler.block_size=1000000000",
    "scheduler.num_gpu_blocks_override=1e18",
    "scheduler.swap_space=1e300",
    "scheduler.offload.host.capacity=1e300",
    "cluster.gpus_per_node=1000000000",
    "workload.requests=1e18",
    "workload.duration_s=1e300",
    "workload.arrivals.rate_rps=1e-300",
    "workload.arrivals.rate_rps=1e300",
    "horizon_s=1e300",
    "engine_overhead.step_s=1e300",
    "engine_overhead.sequence_s=1e300",
    "engine_overhead.prefill_factor=1e300",
    "board_power.compute_weight=1e308",
    "board_power.bandwidth_weight=1e308",
    "pricing.usd_per_gpu_hour=1e308",
    "gpu.memory_bytes=1e300",
    "gpu.hbm_bytes_per_s=1e308",
    "gpu.bf16_flops_per_s=1e308",
    "gpu.fp8_flops_per_s=1e308",
    "gpu.nvlink_bytes_per_s=1e308",
    "gpu.nvlink_latency_s=1e308",
    "gpu.pcie_bytes_per_s=1e308",
    "gpu.nic_bytes_per_s=1e308",
    "gpu.nic_latency_s=1e308",
    "gpu.idle_w=1e308",
    "gpu.max_w=1e308",
    "gpu.usd_per_hour=1e308",
    "model.hidden_size=1e18",
    "model.intermediate_size=1e18",
    "model.num_hidden_layers=1e18",
    "model.num_attention_heads=1e18",
    "model.num_key_value_heads=1e18",
    "model.head_dim=1e18",
    "model.vocab_size=1e18",
    "model.max_position_embeddings=1e18",
]


def refused(*overrides: str) -> list[Problem]:
    with pytest.raises(ConfigError) as caught:
        servesim.load(*overrides)
    return list(caught.value.problems)


def test_figures_beyond_all_bounds_are_all_refused_at_once() -> None:
    told = {problem.path: problem.message for problem in refused(*TOO_MUCH)}
    assert set(told) >= {text.partition("=")[0] for text in TOO_MUCH}
    assert all("at most" in message for message in told.values())


@pytest.mark.parametrize(
    "overrides",
    [
        ("scheduler=static", "scheduler.batch_timeout_s=1e308"),
        ("scheduler=static", "scheduler.batch_size=1000000000"),
        ("scheduler=disaggregated", "cluster.transfer.latency_s=1e300"),
        ("scheduler=disaggregated", "cluster.transfer.bandwidth_bytes_per_s=1e300"),
        ("workload/arrivals=gamma", "workload.arrivals.burstiness=1e-300"),
        ("workload/arrivals=schedule", "workload.arrivals.period_s=1e-300"),
        ("workload/arrivals=schedule", "workload.arrivals.rates=[[0,1e-300]]"),
    ],
)
def test_of_other_options_too(overrides: tuple[str, ...]) -> None:
    (problem,) = refused(*overrides)
    assert problem.path.startswith(overrides[-1].partition("=")[0])


def test_sending_ends_before_the_clock_does() -> None:
    (problem,) = refused("workload.arrivals.rate_rps=1e-9")
    assert problem.path == "workload.arrivals"
    assert "take more than 1e+09 s" in problem.message
    servesim.load("workload.arrivals.rate_rps=1e-9", "workload.duration_s=1e9")
    servesim.load("workload.arrivals.rate_rps=1e-5")
    servesim.load("workload.arrivals.rate_rps=1e-9", "workload.requests=1")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("figure", [1e300, -1e300, inf, -inf, nan])
def test_no_coefficient_is_without_bounds(form: type, figure: float) -> None:
    names = [field.name for field in fields(form)]
    told = {problem.path for problem in problems(form(**dict.fromkeys(names, figure)))}
    assert told == set(names)


def test_every_number_of_a_scenario_has_two_bounds() -> None:
    """The times that an SLO allows compare with whatever there is, and a seed is no quantity."""
    free = {"slo.ttft_s", "slo.tpot_s", "slo.e2e_s", "seed"}
    for scheduler in ("static", "continuous", "disaggregated"):
        scenario = servesim.load(f"scheduler={scheduler}")
        assert {path for path, bounds in numbers(scenario) if len(bounds) < 2} == free


def numbers(component: object, path: str = "") -> list[tuple[str, list[float]]]:
    """Return the paths of all fields that hold numbers, each with its bounds."""
    found: list[tuple[str, list[float]]] = []
    for field in fields(component):  # type: ignore[arg-type]
        value, place = getattr(component, field.name), f"{path}{field.name}"
        if is_dataclass(value):
            found += numbers(value, f"{place}.")
        elif any(word in str(field.type).split(" | ") for word in ("int", "float")):
            bounds = field.metadata["bounds"].values()
            found.append((place, [bound for bound in bounds if bound is not None]))
    return found
