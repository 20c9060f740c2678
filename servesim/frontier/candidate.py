"""A configuration under consideration, still without its number of replicas."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace

from servesim.cluster.pools import PrefillDecode
from servesim.config.overrides import one_value
from servesim.frontier.traffic import Trial, scaled
from servesim.scenario import Scenario

#: Replicas of each pool: ``(replicas,)``, or ``(prefill, decode)`` where the pools are two.
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Candidate:
    """A GPU, a scheduler and a degree of tensor parallelism for the traffic of ``scenario``.

    Both pools of a disaggregated candidate have the same GPUs and the same parallelism. ``overrides`` are
    those of a run of the scenario, its replicas, requests and seeds excepted.
    """

    gpu: str
    scheduler: str
    tensor_parallel_size: int
    scenario: Scenario
    overrides: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """What sets the candidate apart, in words; no two have the same."""
        return f"{self.gpu}, tensor parallel {self.tensor_parallel_size}, {self.scheduler}"

    @property
    def smallest(self) -> Shape:
        """One replica of each pool."""
        return (1, 1) if self.split else (1,)

    @property
    def split(self) -> bool:
        """Whether prefill and decode have pools of their own."""
        return isinstance(self.scenario.cluster, PrefillDecode)

    def gpus(self, shape: Shape) -> int:
        """Return the GPUs of all replicas."""
        return sum(shape) * self.tensor_parallel_size

    def usd_per_hour(self, shape: Shape) -> float:
        """Return what an hour of all GPUs costs."""
        flat = self.scenario.pricing.usd_per_gpu_hour
        return self.gpus(shape) * (self.scenario.gpu.usd_per_hour if flat is None else flat)

    def affordable(self, usd_per_hour: float) -> int:
        """Return how many replicas cost at most so much an hour; ``usd_per_hour`` must be finite."""
        one = self.usd_per_hour((1,))
        return int(usd_per_hour / one * (1 + 1e-9)) if one else 10**9

    def deployed(self, shape: Shape) -> Scenario:
        """Return the scenario with so many replicas."""
        cluster = self.scenario.cluster
        if not isinstance(cluster, PrefillDecode):
            return replace(self.scenario, cluster=replace(cluster, replicas=shape[0]))
        prefill, decode = (
            replace(pool, replicas=replicas)
            for pool, replicas in zip((cluster.prefill, cluster.decode), shape, strict=True)
        )
        return replace(self.scenario, cluster=replace(cluster, prefill=prefill, decode=decode))

    def tried(self, shape: Shape, trial: Trial, seed: int, factor: float = 1.0) -> Scenario:
        """Return one run of a trial, requests coming ``factor`` times as densely."""
        workload = replace(scaled(self.scenario.workload, factor), requests=trial.requests_at(factor))
        return replace(self.deployed(shape), workload=workload, seed=seed, steady=True)

    def command(self, shape: Shape, trial: Trial) -> str:
        """Return the command line that runs the trial of the candidate with so many replicas."""
        seeds = ",".join(map(str, trial.seeds))
        places = ("cluster.prefill", "cluster.decode") if self.split else ("cluster",)
        pools = [
            setting
            for place, replicas in zip(places, shape, strict=True)
            for setting in (
                f"{place}.replicas={replicas}",
                f"{place}.tensor_parallel_size={self.tensor_parallel_size}",
            )
        ]
        several = ["-m"] if len(trial.seeds) > 1 else []
        own = map(one_value, self.overrides) if several else self.overrides
        sent = [f"workload.requests={trial.requests}", "steady=true", f"seed={seeds}"]
        return shlex.join(["servesim", *several, *own, *pools, *sent])
