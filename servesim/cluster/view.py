"""What a router sees of the pool that it stands before: as it is, or as it was a while ago."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Protocol

from servesim.cluster.deployment import Deployment
from servesim.engine.clock import Clock
from servesim.engine.replica import Replica
from servesim.workload.request import Request

#: When a replica's count changed (s), which replica's, and by how much.
Change = tuple[float, int, int]


class PoolView(Protocol):
    """What a router sees of its pool; replicas are numbered from 0.

    Attributes:
        outstanding: requests running and waiting, by replica; kept current.
        kv_blocks: KV blocks of each replica.
        reuses_prefixes: whether a replica may find part of a prompt in its cache; a decode pool computes no
            prompt, and so never does.

    """

    outstanding: list[int]
    kv_blocks: int
    reuses_prefixes: bool

    @property
    def replicas(self) -> int:
        """The number of replicas."""

    @property
    def now(self) -> float:
        """The simulated time in seconds."""

    def kv_used(self, index: int) -> int:
        """Return the KV blocks that a replica's requests hold."""

    def cached_tokens(self, index: int, request: Request) -> int:
        """Return the tokens of a request's prompt whose KV a replica would find in its cache."""

    def keep_changes(self) -> deque[Change]:
        """Return a queue to which every change of a count is added from now on."""


class CurrentView:
    """A pool as it is."""

    def __init__(
        self, clock: Clock, pool: Deployment, replicas: Sequence[Replica[Any]], reuses_prefixes: bool
    ) -> None:
        self._clock = clock
        self._engines = [replica.engine for replica in replicas]
        self.outstanding = [0] * len(replicas)
        self.kv_blocks = pool.kv_blocks
        self.reuses_prefixes = reuses_prefixes
        #: the queues of those who want to know of every change
        self.kept: list[deque[Change]] = []

    @property
    def replicas(self) -> int:
        """The number of replicas."""
        return len(self._engines)

    @property
    def now(self) -> float:
        """The simulated time in seconds."""
        return self._clock.now

    def kv_used(self, index: int) -> int:
        """Return the KV blocks that a replica's requests hold."""
        return int(self._engines[index].kv_used(self._clock.now))

    def cached_tokens(self, index: int, request: Request) -> int:
        """Return the tokens of a request's prompt whose KV a replica would find in its cache."""
        if not request.may_be_cached:
            return 0
        return int(self._engines[index].cached_tokens_of(request, self._clock.now))

    def keep_changes(self) -> deque[Change]:
        """Return a queue to which every change of a count is added from now on."""
        changes: deque[Change] = deque()
        self.kept.append(changes)
        return changes


class LateView:
    """A pool as it was ``delay_s`` ago, which a router must :meth:`catch_up` with before it looks.

    Counts are those of exactly ``delay_s`` ago, so that a router does not know of what it has just sent
    itself. KV blocks and caches are looked at once in each period of ``delay_s``, as a collector of metrics
    does, when they are first asked for: what a router learns of them is at most ``delay_s`` old.
    """

    def __init__(self, view: PoolView, delay_s: float) -> None:
        self._view = view
        self._delay_s = delay_s
        self._changes = view.keep_changes()
        self._period = -1.0
        self._kv_used: list[int] = []
        self._cached: dict[object, list[int]] = {}
        self.outstanding = list(view.outstanding)
        self.kv_blocks = view.kv_blocks
        self.reuses_prefixes = view.reuses_prefixes

    @property
    def replicas(self) -> int:
        """The number of replicas."""
        return self._view.replicas

    @property
    def now(self) -> float:
        """The simulated time in seconds."""
        return self._view.now

    def catch_up(self) -> None:
        """See what has become visible by now.

        A change that lies ahead is one of the warm-up's, after which time began anew.
        """
        now, changes, outstanding = self._view.now, self._changes, self.outstanding
        seen_s = now - self._delay_s
        while changes and not seen_s < changes[0][0] <= now:
            _, index, change = changes.popleft()
            outstanding[index] += change
        period = now // self._delay_s
        if period != self._period:
            self._period = period
            self._kv_used = []
            self._cached = {}

    def kv_used(self, index: int) -> int:
        """Return the KV blocks that a replica's requests held when it was last looked at."""
        if not self._kv_used:
            self._kv_used = [self._view.kv_used(each) for each in range(self.replicas)]
        return self._kv_used[index]

    def cached_tokens(self, index: int, request: Request) -> int:
        """Return the tokens of a prompt that a replica would have found in its cache when last asked.

        Prompts that begin alike and belong to the same stream are asked for together.
        """
        prompt = request.origin.prefix, request.origin.stream
        cached = self._cached.get(prompt)
        if cached is None:
            everyone = range(self.replicas)
            cached = self._cached[prompt] = [self._view.cached_tokens(each, request) for each in everyone]
        return min(cached[index], request.input_tokens)

    def keep_changes(self) -> deque[Change]:
        """Return a queue to which every change of a count is added when it happens."""
        return self._view.keep_changes()
