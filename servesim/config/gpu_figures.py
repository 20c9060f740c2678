"""The figures of a GPU that its file may leave out: what they are then, and where that is from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Any, NamedTuple

from servesim.config.layers import Layers
from servesim.config.nested import value_at, with_value

#: PCIe 4.0 x16 per direction, the least of the shipped GPUs' (A100 and L40S datasheets: 64 GB/s both ways).
PCIE_BYTES_PER_S = 32e9
#: One port of 200 Gb/s per GPU, the least of the shipped GPUs' nodes (DGX A100 user guide).
NIC_BYTES_PER_S = 25e9
#: Hop latencies of NCCL's tuning model, LL protocol (github.com/NVIDIA/nccl, src/graph/tuning.cc, hwLat).
NVLINK_LATENCY_S, PCIE_LATENCY_S, NIC_LATENCY_S = 0.6e-6, 1.0e-6, 5.0e-6
#: Power at rest with an engine on the GPU, as a share of the maximum: the shipped GPUs have 0.14 to 0.23.
IDLE_SHARE = 0.17


class Derived(NamedTuple):
    """A figure that a GPU's file leaves out: its key, its value, why, and the figure that it follows from."""

    key: str
    value: float | None
    reason: str
    follows: str | None = None


def derived(gpu: Mapping[str, Any]) -> Iterator[Derived]:
    """Yield the figures that are left out and follow from others, or are assumed.

    Name, memory, bandwidth, BF16 rate, maximum power, price and one link have to be given.
    """
    has_nvlink, pcie = "nvlink_bytes_per_s" in gpu, gpu.get("pcie_bytes_per_s")
    max_w = gpu.get("max_w")
    if "fp8_flops_per_s" not in gpu:
        yield Derived("fp8_flops_per_s", None, "no FP8 rate is given, so FP8 weights only save memory")
    if not has_nvlink and pcie is not None:
        yield Derived("nvlink_bytes_per_s", pcie, "pcie_bytes_per_s: no NVLink is given", "pcie_bytes_per_s")
    if pcie is None:
        yield Derived("pcie_bytes_per_s", PCIE_BYTES_PER_S, "assumed: PCIe 4.0 x16")
    if "nvlink_latency_s" not in gpu:
        latency_s = NVLINK_LATENCY_S if has_nvlink else PCIE_LATENCY_S
        yield Derived("nvlink_latency_s", latency_s, f"NCCL's for {'NVLink' if has_nvlink else 'PCIe'}")
    if "nic_bytes_per_s" not in gpu:
        yield Derived("nic_bytes_per_s", NIC_BYTES_PER_S, "assumed: one port of 200 Gb/s per GPU")
    if "nic_latency_s" not in gpu:
        yield Derived("nic_latency_s", NIC_LATENCY_S, "NCCL's for a network")
    if "idle_w" not in gpu:
        idle_w = round(IDLE_SHARE * max_w, 1) if isinstance(max_w, (int, float)) else None
        yield Derived("idle_w", idle_w, f"{IDLE_SHARE:.0%} of max_w, as of other GPUs", "max_w")


def lay_gpus(layers: Layers, own: Set[str]) -> None:
    """Complete the GPUs of a composed mapping, the scenario's and those of its pools.

    What a pool says of its GPU is laid over the scenario's, so that ``gpu.usd_per_hour=3`` holds for both
    pools, and ``cluster.prefill.gpu.usd_per_hour=3`` for one; ``own`` are the places of those that were
    chosen by name, and stand for themselves.
    """
    _complete(layers, "gpu")
    cluster, gpu = layers.values.get("cluster"), layers.values.get("gpu")
    if not (isinstance(cluster, dict) and isinstance(gpu, dict)):
        return
    for name, pool in cluster.items():
        said = pool.get("gpu") if isinstance(pool, dict) else None
        place = f"cluster.{name}.gpu"
        if isinstance(said, dict) and place in own:
            _complete(layers, place)
        elif isinstance(said, dict):
            layers.values = with_value(layers.values, place.split("."), {**layers.values["gpu"], **said})


def _complete(layers: Layers, place: str) -> None:
    """Lay the figures of one GPU that are derived, and note them."""
    gpu = value_at(layers.values, place.split("."))
    if not isinstance(gpu, Mapping):
        return
    found = list(derived(gpu))
    for one in found:
        sources = () if one.follows is None else (f"{place}.{one.follows}",)
        layers.lay(f"{place}.{one.key}", one.value, one.reason, sources)
    told = "; ".join(f"{one.key} = {_figure(one.value)} ({one.reason})" for one in found)
    note = f"{gpu.get('name') or place}, not in its file: {told}"
    if found and note not in layers.notes:
        layers.notes.append(note)


def _figure(value: object) -> str:
    return "null" if value is None else f"{value:g}" if isinstance(value, (int, float)) else str(value)
