"""The plain cluster: one pool behind a router."""

from __future__ import annotations

from functools import partial
from typing import Any

from servesim.cluster.cluster import Cluster
from servesim.cluster.deployment import Deployment
from servesim.cluster.group import Group
from servesim.cluster.offloading import Offloading
from servesim.cluster.router import Router
from servesim.engine.clock import Clock
from servesim.engine.continuous import Continuous
from servesim.engine.continuous_engine import ContinuousEngine
from servesim.engine.log import COMPLETED, Log
from servesim.engine.preemptive import PreemptiveEngine
from servesim.engine.setup import Setup
from servesim.engine.stalling import StallingEngine
from servesim.engine.static import Static, StaticEngine
from servesim.engine.step_target import TargetedEngine
from servesim.engine.tiered_engine import TieredEngine
from servesim.streams import Streams
from servesim.workload.request import Request


class PooledCluster(Cluster):
    """Whole engines behind one router."""

    def __init__(
        self,
        clock: Clock,
        pool: Deployment,
        scheduler: Continuous | Static,
        router: Router,
        streams: Streams,
        log: Log,
        *,
        shares_prefixes: bool = True,
    ) -> None:
        super().__init__(log, pool.max_model_len)
        self._clock = clock
        if isinstance(scheduler, Continuous) and scheduler.offload is not None:
            self.offloading = Offloading(scheduler.offload, pool)
        draws = None if isinstance(scheduler, Static) else scheduler.draws(streams)

        def engine(index: int) -> StaticEngine | ContinuousEngine:
            if isinstance(scheduler, Static):
                return StaticEngine(index, scheduler, pool.step_time, pool.kv_blocks, log, self._finished)
            return self._engine(self._setup(index, scheduler, pool, self._finished, draws, shares_prefixes))

        reuses_prefixes = isinstance(scheduler, Continuous) and scheduler.enable_prefix_caching
        rng = streams.stream("router")
        self._group: Group[Any] = Group(clock, pool, router, rng, engine, reuses_prefixes)

    @property
    def groups(self) -> tuple[Group[Any], ...]:
        """The groups of replicas, in the order of their global indices."""
        return (self._group,)

    def _engine(self, setup: Setup) -> ContinuousEngine:
        """Return the engine that follows the policies of a scheduler."""
        scheduler = setup.scheduler
        if scheduler.offload is not None and self.offloading is not None:
            tiers, least = self.offloading.tiers(), scheduler.offload.min_load_tokens
            return TieredEngine(setup, tiers, least, self._load)
        if scheduler.prefill_policy != "stall_free":
            return StallingEngine(setup)
        if scheduler.step_target_s is not None:
            return TargetedEngine(setup)
        return PreemptiveEngine(setup) if scheduler.throws_out else ContinuousEngine(setup)

    def _route(self, request: Request) -> None:
        enter = self._enter  # fetched before it is called (see the clock)
        request.replica = enter(self._group, request)

    def _abort(self, request: Request) -> None:
        self._group.abort(request, request.replica)

    def _load(self, request: Request, landed_s: float) -> None:
        """Let the KV of a request land on its replica at a time."""
        self._clock.call_at(landed_s, partial(self._land, request))

    def _land(self, request: Request) -> None:
        replica = self._group.replica(request.replica)
        replica.wake_by(replica.engine.land(request, self._clock.now))

    def _finished(self, request: Request) -> None:
        self._group.left(request.replica)
        self._leave(request, COMPLETED)
