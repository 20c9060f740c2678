"""Serves requests with engines alone: no model, no GPU, no files, and every figure fits on a napkin.

A token's KV is one byte, so a transfer moves as many bytes as the prompt has tokens.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from servesim.cluster.admission import Admission
from servesim.cluster.client import ClosedLoop, OpenLoop, Semaphore
from servesim.cluster.cluster import Cluster
from servesim.cluster.conversations import Conversations
from servesim.cluster.deployment import Deployment, Role
from servesim.cluster.disaggregated import Disaggregated
from servesim.cluster.disaggregated_cluster import DisaggregatedCluster
from servesim.cluster.patience import Patience
from servesim.cluster.pooled_cluster import PooledCluster
from servesim.cluster.router import Pick, RoundRobin, Router
from servesim.cluster.transfer import Links
from servesim.cluster.view import PoolView
from servesim.engine.clock import Clock
from servesim.engine.continuous import Continuous
from servesim.engine.log import COMPLETED, GAP_FIELDS, REQUEST_FIELDS, STEP_FIELDS
from servesim.engine.static import Static
from servesim.streams import Streams
from servesim.workload.arrivals import ClosedLoop as Users
from servesim.workload.batch import Batch
from servesim.workload.client import Client
from servesim.workload.origin import ANYWHERE, Origin
from servesim.workload.recorded import RecordedSessions
from servesim.workload.request import Request
from servesim.workload.sessions import Sessions
from servesim.workload.synthetic import Synthetic
from tests.costs import AffineStepTime

PLENTY = 10**9

#: One request: when it is sent (s), its input tokens, its output tokens.
Sent = tuple[float, int, int]
Row = dict[str, float]


@dataclass
class Log:
    """The raw rows of a run."""

    requests: array[float] = field(default_factory=lambda: array("d"))
    steps: array[float] = field(default_factory=lambda: array("d"))
    gaps: array[float] = field(default_factory=lambda: array("d"))


@dataclass(frozen=True)
class Witness:
    """A router that lets another one choose, and remembers every request that it saw."""

    router: Router
    seen: dict[Request, None]

    def start(self, view: PoolView, rng: np.random.Generator) -> Pick:
        """Return the other router's function, with a memory."""
        pick = self.router.start(view, rng)

        def remember(request: Request) -> int:
            self.seen[request] = None
            return pick(request)

        return remember


@dataclass(frozen=True)
class Service:
    """One pool of equal replicas; with a :class:`Disaggregated` scheduler it is the prefill pool of two.

    ``users`` send requests that are no synthetic workload in a closed loop. Such requests have
    ``origins``, the last ones none where there are fewer. ``looks_for_others``: caches are prepared for
    prompts that have something in common, whether any have or not.
    """

    scheduler: Static | Continuous = field(default_factory=Continuous)
    step_time: AffineStepTime = field(default_factory=AffineStepTime)
    kv_blocks: int = PLENTY
    replicas: int = 1
    router: Router = field(default_factory=RoundRobin)
    max_model_len: int = PLENTY
    decode_step_time: AffineStepTime = field(default_factory=AffineStepTime)
    decode_blocks: int = PLENTY
    decode_replicas: int = 1
    bytes_per_s: float = 1e12
    latency_s: float = 0.0
    pcie_bytes_per_s: float = 1e21
    nic_bytes_per_s: float = 1e21
    client: Client = field(default_factory=Client)
    users: Users | None = None
    admission: Admission | None = None
    origins: Sequence[Origin] = ()
    looks_for_others: bool = False
    seed: int = 0

    def serve(
        self,
        traffic: Sequence[Sent] | Synthetic | Sessions | RecordedSessions,
        *,
        horizon_s: float | None = None,
        duration_s: float | None = None,
    ) -> Run:
        """Serve traffic to its end, or up to a horizon."""
        run = Run(self, traffic, duration_s)
        run.finish(horizon_s)
        return run

    def pools(self) -> list[Deployment]:
        """Return the pools in the order of their replicas' global indices."""
        if not isinstance(self.scheduler, Disaggregated):
            return [self._pool("serve")]
        decode = replace(
            self._pool("decode"),
            replicas=self.decode_replicas,
            first_replica=self.replicas,
            step_time=self.decode_step_time,
            kv_blocks=self.decode_blocks,
        )
        return [self._pool("prefill"), decode]

    def _pool(self, role: Role) -> Deployment:
        """Return a pool of which no more is known than engines ask for: a GPU's links, a block's bytes."""
        links = SimpleNamespace(pcie_bytes_per_s=self.pcie_bytes_per_s, nic_bytes_per_s=self.nic_bytes_per_s)
        return Deployment(
            role=role,
            gpu=cast(Any, links),
            replicas=self.replicas,
            tensor_parallel_size=1,
            first_replica=0,
            sheet=cast(Any, SimpleNamespace(block_bytes=self.scheduler.block_size)),
            step_time=self.step_time,
            kv_blocks=self.kv_blocks,
            kv_bytes_per_token=1,
            max_model_len=self.max_model_len,
        )


class Run:
    """A service at work; ``seen`` holds the requests that were routed, as the engines see them."""

    def __init__(
        self,
        service: Service,
        traffic: Sequence[Sent] | Synthetic | Sessions | RecordedSessions,
        duration_s: float | None = None,
    ) -> None:
        self.service = service
        self.clock, self.log = Clock(), Log()
        self.seen: dict[Request, None] = {}
        shares = any(origin.prefix or origin.stream is not None for origin in service.origins)
        looks = service.looks_for_others or getattr(traffic, "shares_prefixes", False)
        self.cluster = self._cluster(shares or looks or service.client.max_retries > 0)
        if service.admission is not None:
            self.cluster.admit_by(service.admission, None)
        self.server = self._server()
        self.client = self._client(traffic, duration_s)

    def _cluster(self, shares: bool) -> Cluster:
        service, router = self.service, Witness(self.service.router, self.seen)
        pools, streams = service.pools(), Streams(service.seed)
        if not isinstance(service.scheduler, Disaggregated):
            start = self.clock, pools[0], service.scheduler, router, streams, self.log
            return PooledCluster(*start, shares_prefixes=shares)
        ends = ([service.bytes_per_s] * pool.replicas for pool in pools)
        links = Links(self.clock, *ends, service.latency_s)
        start = self.clock, *pools, service.scheduler, router, links, streams, self.log
        return DisaggregatedCluster(*start, shares_prefixes=shares)

    def _server(self) -> Cluster | Patience:
        client = self.service.client
        if not client.is_impatient:
            return self.cluster
        return Patience(self.clock, self.cluster, client, Streams(self.service.seed).stream("retries"))

    def _client(
        self, traffic: Sequence[Sent] | Synthetic | Sessions | RecordedSessions, duration_s: float | None
    ) -> OpenLoop | Semaphore | ClosedLoop | Conversations:
        streams, sending = Streams(self.service.seed), self.service.client
        if isinstance(traffic, (Sessions, RecordedSessions)):
            start = self.clock, traffic, streams, self.server, _go_on, self.cluster.max_model_len
            return Conversations(*start, sending.api_time_s)
        synthetic = isinstance(traffic, Synthetic)
        batches = traffic.batches(streams) if synthetic else _batches(traffic, self.service.origins)
        start = self.clock, batches, self.server, _go_on
        users = traffic.arrivals if synthetic else self.service.users
        if isinstance(users, Users):
            thoughts_s = users.thoughts_s(streams.stream("think times"))
            counted = not synthetic or traffic.counted
            return ClosedLoop(*start, users, thoughts_s, duration_s, sending.api_time_s, counted)
        if sending.max_concurrency is not None:
            return Semaphore(*start, sending.max_concurrency, sending.api_time_s)
        return OpenLoop(*start, sending.api_time_s)

    @property
    def engines(self) -> list[Any]:
        """The engines in the order of their global indices."""
        return [replica.engine for group in self.cluster.groups for replica in group.replicas]

    def instants(self) -> Iterator[float]:
        """Let everything happen; yield each instant at which something did, when all of it has."""
        while (now := self.clock.peek()) < inf:
            self.clock.run_until(now)
            yield now

    def finish(self, horizon_s: float | None = None) -> None:
        """Let everything happen, up to the horizon where there is one; then cut the run."""
        self.clock.run_until(inf if horizon_s is None else horizon_s)
        end_s = self.clock.now if horizon_s is None else horizon_s
        self.client.halt(end_s)
        self.server.halt(end_s)

    # ---- what has been written down

    @property
    def requests(self) -> list[Row]:
        """The rows of requests, in the order of finishing."""
        return _rows(self.log.requests, REQUEST_FIELDS)

    @property
    def completed(self) -> list[Row]:
        """The rows of the requests that completed."""
        return [row for row in self.requests if row["status"] == COMPLETED]

    @property
    def by_id(self) -> list[Row]:
        """The rows of requests, in the order of sending."""
        return sorted(self.requests, key=lambda row: row["request_id"])

    @property
    def leaps(self) -> list[Row]:
        """The rows of leaps, in the order of ending."""
        return _rows(self.log.steps, STEP_FIELDS)

    @property
    def gaps(self) -> list[Row]:
        """The rows of torn gaps."""
        return _rows(self.log.gaps, GAP_FIELDS)

    def column(self, name: str) -> NDArray[np.float64]:
        """Return one field of all requests, in the order of sending."""
        table = _table(self.log.requests, REQUEST_FIELDS)
        order = np.argsort(table[:, REQUEST_FIELDS.index("request_id")])
        column: NDArray[np.float64] = table[order, REQUEST_FIELDS.index(name)]
        return column


def end_s(leap: Row, steps: int | None = None) -> float:
    """Return when the first ``steps`` steps of a leap have ended; without a number, all."""
    count = leap["steps"] if steps is None else steps
    return leap["start_s"] + count * leap["first_step_s"] + leap["increment_s"] * (count * (count - 1) / 2)


def step_starts(leap: Row) -> list[float]:
    """Return when each step of a leap starts."""
    return [end_s(leap, number) for number in range(int(leap["steps"]))]


def _batches(requests: Sequence[Sent], origins: Sequence[Origin]) -> Iterator[Batch]:
    if requests:
        sent_s, inputs, outputs = zip(*requests, strict=True)
        known = [*origins, *[ANYWHERE] * len(requests)][: len(requests)] if origins else None
        yield Batch(np.array(sent_s, dtype=np.float64), np.array(inputs), np.array(outputs), known)


def _go_on(sent: int) -> None:
    """Do nothing when the client pauses."""


def _table(buffer: array[float], fields: tuple[str, ...]) -> NDArray[np.float64]:
    return np.array(buffer, dtype=np.float64).reshape(-1, len(fields))


def _rows(buffer: array[float], fields: tuple[str, ...]) -> list[Row]:
    return [dict(zip(fields, row, strict=True)) for row in _table(buffer, fields).tolist()]
