"""KV transfer from prefill to decode replicas over links that transfers share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, Literal

from servesim.check import LEAST_FACTOR, MOST_PER_S, MOST_S, quantity
from servesim.cluster.deployment import Deployment
from servesim.cost.gpu import Gpu
from servesim.engine.clock import ARRIVAL, Alarm, Clock


@dataclass(frozen=True)
class TransferOverhead:
    """What a KV transfer between nodes loses against its NICs, fitted on measured transfers.

    It moves at ``nic_efficiency`` of their line rate (headers, and blocks that are sent one by one), after
    ``nic_setup_s`` beside the network's latency (the handshake, posting the blocks, waiting for the last).
    """

    name: str = quantity()
    nic_efficiency: float = quantity("share of line rate", at_least=LEAST_FACTOR, at_most=1)
    nic_setup_s: float = quantity("s", at_least=0, at_most=MOST_S)
    provenance: Mapping[str, Any] | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Transfer:
    """The link of each GPU over which KV travels.

    ``auto`` is NVLink where both pools fit into one node and the NIC otherwise. A replica sends and
    receives over the links of all its GPUs at once, each rank its own heads. Bandwidth and latency are the
    GPU's, on the NIC with the ``overhead`` of a transfer; what is given here stands in place of both.
    """

    link: Literal["auto", "nvlink", "nic", "pcie"] = quantity(default="auto")
    bandwidth_bytes_per_s: float | None = quantity(
        "bytes/s per GPU", at_least=1, at_most=MOST_PER_S, default=None
    )
    latency_s: float | None = quantity("s", at_least=0, at_most=MOST_S, default=None)
    overhead: TransferOverhead | None = quantity(default=None)

    def as_built(self, gpus: Sequence[Gpu], one_node: bool) -> dict[str, Any]:
        """Return the link between GPUs as it comes out: its name, the slower end's bytes/s, the latency."""
        return {
            "link": self._link(one_node),
            "bandwidth_bytes_per_s": min(self.bandwidth(gpu, one_node) for gpu in gpus),
            "latency_s": max(self.latency(gpu, one_node) for gpu in gpus),
        }

    def bandwidth(self, gpu: Gpu, one_node: bool) -> float:
        """Return the bandwidth that KV gets of one GPU's link, in one direction, in bytes/s."""
        efficiency = self.overhead.nic_efficiency if self.overhead else 1.0
        own = {
            "nvlink": gpu.nvlink_bytes_per_s,
            "nic": efficiency * gpu.nic_bytes_per_s,
            "pcie": gpu.pcie_bytes_per_s,
        }
        return self.bandwidth_bytes_per_s or own[self._link(one_node)]

    def latency(self, gpu: Gpu, one_node: bool) -> float:
        """Return the time from the start of a transfer to its first byte, in s."""
        if self.latency_s is not None:
            return self.latency_s
        if self._link(one_node) != "nic":
            return gpu.nvlink_latency_s
        return gpu.nic_latency_s + (self.overhead.nic_setup_s if self.overhead else 0.0)

    def _link(self, one_node: bool) -> str:
        if self.link == "auto":
            return "nvlink" if one_node else "nic"
        return self.link


class _Flow:
    """Bytes on their way between two ends."""

    __slots__ = ("arrived", "left_bytes", "rate", "source", "target")

    def __init__(self, source: int, target: int, size_bytes: float, arrived: Callable[[], None]) -> None:
        self.source = source
        self.target = target
        self.left_bytes = size_bytes
        self.arrived = arrived
        self.rate = 0.0


class Links:
    """Transfers under way; those that share an end of a link share it equally.

    A transfer between ends with capacities E and I (bytes/s) used by n and m transfers moves at
    min(E / n, I / m). Rates change only when a transfer starts or ends.

    Args:
        clock: event time.
        egress: bytes/s that each source can send.
        ingress: bytes/s that each target can receive.
        latency_s: time before the first byte of each transfer.
    """

    def __init__(self, clock: Clock, egress: list[float], ingress: list[float], latency_s: float) -> None:
        self._clock = clock
        self._egress = egress
        self._ingress = ingress
        self._sending = [0] * len(egress)
        self._receiving = [0] * len(ingress)
        self._latency_s = latency_s
        self._flows: dict[_Flow, None] = {}
        self._updated_s = 0.0
        self._alarm = Alarm(self._end)
        self._first: _Flow | None = None
        self._due_s = inf

    @classmethod
    def between(
        cls, clock: Clock, sources: Deployment, targets: Deployment, transfer: Transfer, one_node: bool
    ) -> Links:
        """Return the links from every replica of one pool to every replica of another."""
        egress, ingress = (
            [pool.tensor_parallel_size * transfer.bandwidth(pool.gpu, one_node)] * pool.replicas
            for pool in (sources, targets)
        )
        latency_s = max(transfer.latency(pool.gpu, one_node) for pool in (sources, targets))
        return cls(clock, egress, ingress, latency_s)

    def send(self, source: int, target: int, size_bytes: float, arrived: Callable[[], None]) -> None:
        """Start a transfer now; call ``arrived`` when its last byte is there."""
        flow = _Flow(source, target, size_bytes, arrived)
        self._clock.call_at(self._clock.now + self._latency_s, lambda: self._join(flow))

    def _join(self, flow: _Flow) -> None:
        self._advance()
        self._flows[flow] = None
        self._sending[flow.source] += 1
        self._receiving[flow.target] += 1
        self._share()

    def _advance(self) -> None:
        """Move the bytes that have travelled since the last change."""
        elapsed_s = self._clock.now - self._updated_s
        for flow in self._flows:
            flow.left_bytes -= flow.rate * elapsed_s
        self._updated_s = self._clock.now

    def _share(self) -> None:
        """Set the rate of every transfer, and the alarm at the first one's end."""
        left_s, first = inf, None
        self._first = None
        for flow in self._flows:
            flow.rate = min(
                self._egress[flow.source] / self._sending[flow.source],
                self._ingress[flow.target] / self._receiving[flow.target],
            )
            if flow.left_bytes / flow.rate < left_s:
                left_s, first = flow.left_bytes / flow.rate, flow
        if first is not None:
            self._first, self._due_s = first, self._clock.now + max(left_s, 0.0)
            self._clock.set(self._alarm, self._due_s, ARRIVAL)

    def _end(self) -> None:
        """Let the first transfer arrive, and with it those that end at the same instant."""
        first = self._first
        if first is None or self._clock.now != self._due_s:
            return  # the rates have changed since this alarm was set
        self._advance()
        instant_bytes = 1e-9 * first.rate
        arrived = [flow for flow in self._flows if flow is first or flow.left_bytes <= instant_bytes]
        for flow in arrived:
            del self._flows[flow]
            self._sending[flow.source] -= 1
            self._receiving[flow.target] -= 1
        self._share()
        for flow in arrived:
            flow.arrived()
