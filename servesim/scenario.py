"""One run, described whole: the tree of components from which a simulation is built."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, ClassVar

from servesim import __version__
from servesim.check import MOST_S, Problem, quantity
from servesim.cluster.admission import Admission, TtftSlo
from servesim.cluster.deployment import Deployment, PoolMemory, Role
from servesim.cluster.disaggregated import Disaggregated
from servesim.cluster.placement import Placement
from servesim.cluster.pools import Pool, PrefillDecode
from servesim.cluster.router import Router
from servesim.component import plain
from servesim.cost.auto import Auto
from servesim.cost.gpu import Gpu
from servesim.cost.model import Model
from servesim.cost.overhead import EngineOverhead
from servesim.cost.power import BoardPower
from servesim.cost.profile import Profile
from servesim.cost.roofline import Roofline
from servesim.engine.continuous import Continuous
from servesim.engine.static import Static
from servesim.results.dialects.known import DialectName
from servesim.results.pricing import Pricing
from servesim.results.slo import Slo
from servesim.workload.client import Client
from servesim.workload.recorded import RecordedSessions
from servesim.workload.replay import Replay
from servesim.workload.sessions import Sessions
from servesim.workload.synthetic import Synthetic
from servesim.workload.trace import Trace


@dataclass(frozen=True)
class Scenario:
    """A model on GPUs, the way to serve it, the traffic, and what it is judged by.

    ``engine_args`` are flags of an engine that some of it was read from, and ``notes`` what a reader of the
    results should know of these and of files that described the model or a GPU.
    """

    model: Model
    gpu: Gpu
    calibration: Auto | Profile | Roofline
    scheduler: Static | Continuous | Disaggregated
    cluster: Pool | PrefillDecode
    router: Router
    workload: Synthetic | Sessions | Trace | Replay
    slo: Slo
    pricing: Pricing
    engine_overhead: EngineOverhead | None = quantity(default=None)
    board_power: BoardPower = quantity(default=BoardPower())
    client: Client = quantity(default=Client())
    admission: Admission | None = quantity(default=None)
    ignore_capacity: bool = quantity(default=False)
    seed: int = quantity(at_least=0, default=0)
    steady: bool = quantity(default=False)
    metrics: DialectName = quantity(default="vllm")
    horizon_s: float | None = quantity("s", above=0, at_most=MOST_S, default=None)
    engine_args: str | None = quantity(default=None)
    notes: tuple[str, ...] = quantity(default=())

    #: the fields that `problems` looks at; it is asked whenever these are right in themselves
    concerns: ClassVar[tuple[str, ...]] = (
        "model",
        "gpu",
        "calibration",
        "engine_overhead",
        "scheduler",
        "cluster",
        "ignore_capacity",
    )
    concerns_of: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "traffic_problems": ("workload", "client"),
        "admission_problems": ("admission", "slo"),
    }

    hints: ClassVar[Mapping[str, str]] = {
        "experiment": "is a study of many runs; choose one with experiment=NAME, or see servesim.sweep",
        **dict.fromkeys(
            ("speculative_config", "speculation"),
            "choose scheduler/speculation=NAME, or give --speculative-config in engine_args",
        ),
    }

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong between components: profiles, parallelism, memory, lengths."""
        nothing_fitted = isinstance(self.calibration, Auto) and not self.calibration.profiles
        if nothing_fitted:
            engine = self.engine_overhead.engine if self.engine_overhead else None
            message = (
                f"there is no profile for the engine {engine}; choose another engine_overhead or roofline"
            )
            yield Problem("calibration", "auto", message)
        unknown = list(self._profile_problems())
        yield from unknown
        split = isinstance(self.cluster, PrefillDecode)
        if split != isinstance(self.scheduler, Disaggregated):
            wanted = "prefill and decode pools" if not split else "one pool"
            yield Problem(
                "cluster", None, f"this scheduler needs {wanted}; choose cluster=<name of the scheduler>"
            )
            return
        speculation = self.scheduler.speculation
        misfits = [] if speculation is None else list(speculation.misfits(self.model))
        yield from (problem.under("scheduler.speculation") for problem in misfits)
        for placement in self.placements:
            impossible = list(placement.split_problems())
            yield from impossible
            if not (impossible or misfits):
                unfit = list(placement.memory_problems(self._system_prompt_tokens))
                yield from unfit
                if not (unfit or unknown or nothing_fitted):
                    yield from placement.target_problems()

    def _profile_problems(self) -> Iterator[Problem]:
        """Yield the GPUs that name one whose profile is not there."""
        if not isinstance(self.calibration, Auto):
            return
        gpus = {(f"{each.path}.gpu" if each.pool.gpu else "gpu"): each.gpu for each in self.placements}
        for path, gpu in gpus.items():
            if message := self.calibration.lacks(gpu):
                yield Problem(f"{path}.profile_of", gpu.profile_of, message)

    @property
    def _system_prompt_tokens(self) -> int:
        """Tokens that every prompt begins with; 0 where there are none, or what is given is no number."""
        tokens = self.workload.system_prompt_tokens if isinstance(self.workload, Sessions) else 0
        return tokens if isinstance(tokens, int) else 0

    def traffic_problems(self) -> Iterator[Problem]:
        """Yield what of the client does not go with the traffic."""
        if isinstance(self.workload, Synthetic):
            yield from self.client.misfits(self.workload.concurrency)
        if self.conversations is not None:
            yield from self.client.misfits_of_sessions(isinstance(self.workload, Trace))

    def admission_problems(self) -> Iterator[Problem]:
        """Yield the limit that admission control goes by, where there is none."""
        if isinstance(self.admission, TtftSlo) and self.admission.ttft_s is None and self.slo.ttft_s is None:
            message = "is missing, and slo.ttft_s, which stands in for it, too (s)"
            yield Problem("admission.ttft_s", None, message)

    @property
    def conversations(self) -> Sessions | RecordedSessions | None:
        """Return the sessions of the traffic; None where no request waits for the answer to another."""
        if isinstance(self.workload, Trace):
            return self.workload.recorded
        return self.workload if isinstance(self.workload, Sessions) else None

    @property
    def shares_prefixes(self) -> bool:
        """Whether what one request leaves in a cache may be found by another: a retry is a request, too."""
        return self.workload.shares_prefixes or self.client.max_retries > 0

    @cached_property
    def placements(self) -> list[Placement]:
        """The model on each of the pools, whether it fits or not."""
        if isinstance(self.cluster, Pool):
            return [self._placement("cluster", "serve", self.cluster)]
        return [
            self._placement("cluster.prefill", "prefill", self.cluster.prefill),
            self._placement("cluster.decode", "decode", self.cluster.decode),
        ]

    def _placement(self, path: str, role: Role, pool: Pool) -> Placement:
        return Placement(
            path,
            role,
            pool,
            pool.gpu or self.gpu,
            self.model,
            self.scheduler,
            self.calibration,
            self.engine_overhead,
            self.ignore_capacity,
        )

    def deployments(self) -> list[Deployment]:
        """Return the pools as deployed; the scenario must be free of problems."""
        firsts = accumulate((each.pool.replicas for each in self.placements), initial=0)
        return [each.deployment(first) for each, first in zip(self.placements, firsts, strict=False)]

    def memory(self) -> list[PoolMemory]:
        """Return the memory of each pool, whether the model fits or not."""
        return [each.memory() for each in self.placements]

    def transfer(self) -> dict[str, Any] | None:
        """Return the link between the pools as it comes out; None where there is one pool."""
        if isinstance(self.cluster, Pool):
            return None
        gpus = [each.gpu for each in self.placements]
        return self.cluster.transfer.as_built(gpus, self.cluster.one_node(self.gpu))

    def as_dict(self) -> dict[str, Any]:
        """Return the resolved configuration as plain values, with the version of servesim.

        Of the profiles at hand, those that a pool has.
        """
        told = self
        if isinstance(self.calibration, Auto):
            used = self.calibration.used([each.gpu for each in self.placements])
            told = replace(self, calibration=used)
        return {"version": __version__, **plain(told)}
