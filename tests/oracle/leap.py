"""Drives the engines of servesim with the cases that the oracle runs."""

from __future__ import annotations

from math import inf
from typing import Any

from servesim.cluster.disaggregated import Disaggregated
from servesim.cluster.router import LeastOutstanding, RoundRobin, Router
from servesim.cost.memory import GIB
from servesim.engine.continuous import Continuous
from servesim.engine.static import Static
from servesim.workload.arrivals import ClosedLoop
from servesim.workload.client import Client
from tests.oracle.cases import Case, DisaggregatedCase, PooledCase
from tests.oracle.static import Static as OracleStatic
from tests.serving import Run, Service

ROUTERS: dict[str, Router] = {"round_robin": RoundRobin(), "least_outstanding": LeastOutstanding()}


def leap(case: Case, horizon_s: float | None = None) -> Run:
    """Run servesim's engines on a case."""
    return service_of(case).serve(case.requests, horizon_s=horizon_s)


def service_of(case: Case) -> Service:
    """Return servesim's service of a case."""
    return _two_pools(case) if isinstance(case, DisaggregatedCase) else _one_pool(case)


def _one_pool(case: PooledCase) -> Service:
    limits, copies = _swapping(case.limits)
    return Service(
        Static(**limits) if case.engine is OracleStatic else Continuous(**limits),
        step_time=case.step_time,
        kv_blocks=case.kv_blocks,
        replicas=case.replicas,
        router=ROUTERS[case.rule],
        max_model_len=case.max_model_len,
        **copies,
        **_client(case),
    )


def _two_pools(case: DisaggregatedCase) -> Service:
    """Return pools with links so wide that a transfer takes its latency, whatever its size and company."""
    limits, copies = _swapping(case.limits)
    return Service(
        Disaggregated(**limits, first_token=case.first_token),
        step_time=case.prefill_step_time,
        kv_blocks=case.prefill_blocks,
        replicas=case.prefill_replicas,
        router=ROUTERS[case.rule],
        max_model_len=case.max_model_len,
        decode_step_time=case.decode_step_time,
        decode_blocks=case.decode_blocks,
        decode_replicas=case.decode_replicas,
        bytes_per_s=1e30,
        latency_s=case.transfer_s,
        **copies,
        **_client(case),
    )


def _swapping(limits: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a scheduler and a service are told of limits that may swap: a token's KV is one byte."""
    rest = {name: value for name, value in limits.items() if not name.startswith("swap_")}
    if "swap_blocks" not in limits:
        return rest, {}
    block_bytes = limits["block_size"]
    space = limits["swap_blocks"] * block_bytes / GIB
    rest |= {"preemption_mode": "swap", "swap_space": space, "pcie_efficiency": 0.5}
    return rest, {"pcie_bytes_per_s": block_bytes / max(0.5 * limits["swap_block_s"], 1e-15)}


def _client(case: Case) -> dict[str, Any]:
    sending = case.sending
    users = sending.users and ClosedLoop(sending.users, sending.ramp_up_s, sending.think_time_s)
    limits = sending.timeout_s, sending.ttft_timeout_s
    timeout_s, ttft_timeout_s = (None if limit_s == inf else limit_s for limit_s in limits)
    client = Client(
        sending.max_concurrency,
        api_time_s=sending.api_time_s,
        timeout_s=timeout_s,
        ttft_timeout_s=ttft_timeout_s,
    )
    return {"client": client, "users": users, "origins": sending.origins}
