"""The hardware of a scenario: its pools, its GPUs, and what an hour of them costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from servesim.screen.figures import counted, dollars, number, typed
from servesim.words import listed

_MICROSECOND = 1e-6
_GIGA = 1e9


def pools(scenario: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the pools of the cluster by role."""
    cluster = scenario["cluster"]
    if "prefill" not in cluster:
        return {"serve": cluster}
    return {role: cluster[role] for role in ("prefill", "decode")}


def gpus(scenario: Mapping[str, Any]) -> dict[str, int]:
    """Return how many GPUs of each name the cluster has."""
    counts: dict[str, int] = {}
    for pool in pools(scenario).values():
        name = (pool["gpu"] or scenario["gpu"])["name"]
        counts[name] = counts.get(name, 0) + pool["replicas"] * pool["tensor_parallel_size"]
    return counts


def usd_per_hour(scenario: Mapping[str, Any]) -> float:
    """Return what all GPUs of the cluster cost in an hour."""
    return sum(count * usd for (_, usd), count in _priced(scenario).items())


def prices(scenario: Mapping[str, Any]) -> str:
    """Return how many GPUs there are at which price, and what they cost together."""
    priced = _priced(scenario)
    if len({usd for _, usd in priced}) == 1:
        priced = {
            ("GPU" if sum(priced.values()) == 1 else "GPUs", usd): sum(priced.values()) for _, usd in priced
        }
    each = (f"{count} {name} at {dollars(usd)}" for (name, usd), count in priced.items())
    return f"{listed(each, 'and')} per GPU-hour: {dollars(usd_per_hour(scenario))} per hour"


def _priced(scenario: Mapping[str, Any]) -> dict[tuple[str, float], int]:
    """Return how many GPUs of each name and price there are."""
    flat, counts = scenario["pricing"]["usd_per_gpu_hour"], dict[tuple[str, float], int]()
    for pool in pools(scenario).values():
        gpu = pool["gpu"] or scenario["gpu"]
        kind = (gpu["name"], gpu["usd_per_hour"] if flat is None else flat)
        counts[kind] = counts.get(kind, 0) + pool["replicas"] * pool["tensor_parallel_size"]
    return counts


def cluster(scenario: Mapping[str, Any], transfer: Mapping[str, Any] | None) -> str:
    """Return the pools in words, the router, and the link between two pools."""
    parts = []
    for role, pool in pools(scenario).items():
        replicas = counted(pool["replicas"], "replica" if role == "serve" else f"{role} replica")
        gpu = (pool["gpu"] or scenario["gpu"])["name"]
        parts.append(f"{replicas} of {pool['tensor_parallel_size']} x {gpu}")
    parallel = any(pool["tensor_parallel_size"] > 1 for pool in pools(scenario).values())
    words = f"{' and '.join(parts)}{' (tensor parallel)' if parallel else ''}"
    return f"{words}, router {_router(scenario['router'])}{_link(transfer) if transfer else ''}"


def _router(router: Mapping[str, Any]) -> str:
    """Return the router's kind and what is set of it."""
    kind, delay_s = router["kind"], router.get("delay_s") or None
    values = {**{key: value for key, value in router.items() if key != "kind"}, "delay_s": delay_s}
    options = ", ".join(f"{key}={typed(value)}" for key, value in values.items() if value is not None)
    return f"{kind} ({options})" if options else str(kind)


def _link(transfer: Mapping[str, Any]) -> str:
    """Return the link that KV travels over."""
    bandwidth = number(transfer["bandwidth_bytes_per_s"] / _GIGA)
    latency = number(transfer["latency_s"] / _MICROSECOND)
    return f"; KV over {transfer['link']}, {bandwidth} GB/s per GPU, {latency} us latency"
