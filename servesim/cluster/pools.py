"""Pools: how many replicas, on how many GPUs each, of which kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from servesim.check import Problem, quantity
from servesim.cluster.transfer import Transfer
from servesim.cost.gpu import Gpu

#: Replicas of a pool: more than any data centre holds.
MOST_REPLICAS = 100_000


@dataclass(frozen=True)
class Pool:
    """Identical replicas, each on ``tensor_parallel_size`` GPUs of one node.

    ``gpu`` is the kind of GPU where it differs from the scenario's.
    """

    replicas: int = quantity("replicas", at_least=1, at_most=MOST_REPLICAS, default=1)
    tensor_parallel_size: int = quantity("GPUs", at_least=1, at_most=100_000, default=1)
    gpus_per_node: int = quantity("GPUs", at_least=1, at_most=100_000, default=8)
    gpu: Gpu | None = None

    hints: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("prefill", "decode", "transfer"), "pools for prefill and decode come with scheduler=disaggregated"
    )

    @property
    def gpus(self) -> int:
        """GPUs of the whole pool."""
        return self.replicas * self.tensor_parallel_size

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong between fields: a replica lives inside one node."""
        if self.tensor_parallel_size > self.gpus_per_node:
            yield Problem(
                "tensor_parallel_size",
                self.tensor_parallel_size,
                f"must be at most gpus_per_node, {self.gpus_per_node}: a replica stays inside a node (GPUs)",
            )


@dataclass(frozen=True)
class PrefillDecode:
    """A pool that prefills, a pool that decodes, and the links between them."""

    prefill: Pool
    decode: Pool
    transfer: Transfer

    hints: ClassVar[Mapping[str, str]] = {
        name: f"a disaggregated cluster has two pools: set cluster.prefill.{name} and cluster.decode.{name}"
        for name in ("replicas", "tensor_parallel_size", "gpus_per_node")
    }

    def one_node(self, gpu: Gpu) -> bool:
        """Say whether both pools have room in one node: all their GPUs, of one kind (``gpu`` by default)."""
        node = min(self.prefill.gpus_per_node, self.decode.gpus_per_node)
        one_kind = (self.prefill.gpu or gpu) == (self.decode.gpu or gpu)
        return one_kind and self.prefill.gpus + self.decode.gpus <= node
