"""Clusters: what those of one pool and of two have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from math import isnan, nan
from typing import Any

from servesim.cluster.admission import Admission, Gate
from servesim.cluster.deployment import Deployment
from servesim.cluster.group import Group
from servesim.cluster.offloading import Offloading
from servesim.cost.memory import GIB
from servesim.engine.clock import StalledError
from servesim.engine.continuous import Continuous
from servesim.engine.log import (
    DROPPED,
    NO_REASON,
    PROMPT_TOO_LONG,
    QUEUED,
    RUNNING,
    TIMED_OUT,
    Log,
    request_row,
)
from servesim.engine.setup import Setup
from servesim.engine.swap_space import Swaps, SwapSpace
from servesim.engine.token_draws import TokenDraws
from servesim.workload.request import Request


class Cluster(ABC):
    """Takes requests in and writes the row of each when it leaves, or when the run is cut.

    Args:
        log: where rows are written.
        max_model_len: tokens that a sequence may have, prompt and output together.
    """

    def __init__(self, log: Log, max_model_len: int) -> None:
        self._log = log
        self._max_model_len = max_model_len
        self._open: dict[Request, None] = {}
        #: hands a request to the replica that a router picks; returns its index, -1 where it is turned away
        self._enter: Callable[[Group[Any], Request], int] = Group.send
        self.injected = 0
        self.length_capped = 0
        self._evicted_before = 0
        self.swaps = Swaps()
        self.offloading: Offloading | None = None
        #: told of each request that leaves, finished or dropped (a client that waits for answers listens)
        self.on_leave: Callable[[Request], None] | None = None

    def accept(self, request: Request) -> None:
        """Take a request in at its sending: drop it if its prompt is too long, cap its output, route it."""
        self.injected += 1
        room = self._max_model_len - request.input_tokens
        self._open[request] = None
        if room <= 0:
            self._leave(request, DROPPED, PROMPT_TOO_LONG)
            return
        if request.output_tokens > room:
            request.output_tokens = room
            self.length_capped += 1
        self._route(request)

    def admit_by(self, admission: Admission, ttft_s: float | None) -> None:
        """From now on turn requests away by a rule, before they are queued.

        Args:
            admission: the rule.
            ttft_s: the limit on TTFT of the service level objective.
        """
        gate = admission.start([replica.engine for replica in self.groups[0].replicas], ttft_s)
        self._enter = partial(self._enter_by, gate)

    def hang_up(self, request: Request, at_s: float) -> None:
        """Give a request up wherever it is: its client has waited until ``at_s`` and does no longer."""
        self._abort(request)
        request.finished_s = at_s
        self._leave(request, TIMED_OUT)

    def note_on_its_way(self, request: Request) -> None:
        """Take account of a request that was sent, when the run is cut before it arrives."""
        self.injected += 1
        request.arrived_s = nan
        self._open[request] = None

    @property
    def max_model_len(self) -> int:
        """Tokens that a sequence may have, prompt and output together."""
        return self._max_model_len

    @property
    def unfinished(self) -> int:
        """Requests that are in the system."""
        return len(self._open)

    @property
    def evicted_blocks(self) -> int:
        """Findable blocks that have been lost to make room, on all replicas."""
        replicas = (replica for group in self.groups for replica in group.replicas)
        lost: int = sum(replica.engine.kv.evicted_blocks for replica in replicas)
        return lost - self._evicted_before

    def forget(self) -> None:
        """Take no account of what has been served so far: drop its rows and counts; nothing may be open."""
        if self._open:
            raise StalledError(f"{len(self._open)} requests of the warm-up never end")
        for rows in (self._log.requests, self._log.steps, self._log.gaps):
            del rows[:]
        self.injected = self.length_capped = 0
        self._evicted_before += self.evicted_blocks
        self.swaps.forget()
        if self.offloading is not None:
            self.offloading.forget()
        self.on_leave = None

    def halt(self, now: float) -> None:
        """Cut the run: stop every replica and write the rows of the requests still in the system."""
        for group in self.groups:
            group.halt(now)
        for request in self._open:
            waits = isnan(request.queue_s) and not isnan(request.arrived_s)
            self._log.requests.frombytes(request_row(request, QUEUED if waits else RUNNING))

    def _leave(self, request: Request, status: int, reason: int = NO_REASON) -> None:
        del self._open[request]
        self._log.requests.frombytes(request_row(request, status, reason))
        if self.on_leave is not None:
            self.on_leave(request)

    def _setup(
        self,
        index: int,
        scheduler: Continuous,
        pool: Deployment,
        finished: Callable[[Request], None],
        draws: TokenDraws | None,
        shares_prefixes: bool,
    ) -> Setup:
        """Return what the engine of a pool's replica is built of, ``index`` being its global one."""
        return Setup(
            index,
            scheduler,
            pool.step_time,
            pool.kv_blocks,
            self._log,
            finished,
            draws,
            self._swap_space(scheduler, pool),
            shares_prefixes,
        )

    def _swap_space(self, scheduler: Continuous, pool: Deployment) -> SwapSpace | None:
        """Return the host memory of one replica for swapped KV; None where the preempted are recomputed."""
        if scheduler.preemption_mode == "recompute":
            return None
        block_bytes = pool.sheet.block_bytes
        blocks = int(scheduler.swap_space * GIB // block_bytes)
        block_s = block_bytes / (scheduler.pcie_efficiency * pool.gpu.pcie_bytes_per_s)
        return SwapSpace(blocks, scheduler.block_size, block_s, self.swaps)

    @property
    @abstractmethod
    def groups(self) -> tuple[Group[Any], ...]:
        """The groups of replicas, in the order of their global indices."""

    def _enter_by(self, gate: Gate, group: Group[Any], request: Request) -> int:
        """Do as ``_enter`` says, unless the gate has a reason to turn the request away."""
        index = group.choose(request)
        replica = group.replica(index)
        if reason := gate(request, index - group.first):
            group.left(index)
            self._leave(request, DROPPED, reason)
            return -1
        replica.submit(request)
        return index

    @abstractmethod
    def _route(self, request: Request) -> None:
        """Send a request on its way."""

    @abstractmethod
    def _abort(self, request: Request) -> None:
        """Let the engine that has a request give it up."""
