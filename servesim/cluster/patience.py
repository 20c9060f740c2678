"""Patience: after how long a client hangs up, and how often it tries again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import count
from math import isnan

import numpy as np

from servesim.cluster.cluster import Cluster
from servesim.engine.clock import EARLY_S, TIME_OUT, Alarm, Clock
from servesim.workload.client import Client
from servesim.workload.request import Request


class Patience:
    """Stands between a client and the cluster, looks like the cluster to it, and has its patience.

    It hangs up on what takes too long and sends again what has failed; the client hears of a request once,
    when its last attempt has ended. To the cluster each attempt is a request of its own, and they are
    numbered in the order of sending. A retry is due when its first attempt was: what the attempts before it
    and the waits between them took is time in the client.

    Args:
        clock: event time.
        cluster: where the attempts go.
        client: how patient it is.
        rng: the random stream of the waits before retries.
    """

    def __init__(self, clock: Clock, cluster: Cluster, client: Client, rng: np.random.Generator) -> None:
        #: told of each request whose last attempt has ended
        self.on_leave: Callable[[Request], None] | None = None
        #: retries that the run was cut before
        self.retries_pending = 0
        self._clock = clock
        self._cluster = cluster
        self._client = client
        self._rng = rng
        self._numbers = count()
        self._streams = count(-1, -1)
        #: the attempts that the cluster has, each with the request as the client knows it
        self._open: dict[Request, Request] = {}
        #: the retries that are not there yet, likewise
        self._to_come: dict[Request, Request] = {}
        limits = (client.timeout_s, self._has_ended), (client.ttft_timeout_s, self._has_begun)
        self._limits = [Limit(clock, s, met, cluster.hang_up) for s, met in limits if s is not None]
        cluster.on_leave = self._left

    # ---- what the client sees of a cluster

    def accept(self, request: Request) -> None:
        """Take a request in at its arrival.

        Its retries find what is left of its prompt in a prefix cache, so they need a name for it.
        """
        if self._client.max_retries and request.origin.stream is None:
            request.origin = request.origin._replace(stream=next(self._streams))
            request.may_be_cached = True
        self._try(request, request)

    def note_on_its_way(self, request: Request) -> None:
        """Take account of a request that was sent, when the run is cut before it arrives."""
        request.id = next(self._numbers)
        self._cluster.note_on_its_way(request)

    def halt(self, now: float) -> None:
        """Cut the run: retries that have been sent will not arrive, the others are never sent."""
        for retry in self._to_come:
            if retry.sent_s - EARLY_S <= now:
                self.note_on_its_way(retry)
            else:
                self.retries_pending += 1
        self._cluster.halt(now)

    @property
    def max_model_len(self) -> int:
        """Tokens that a sequence may have, prompt and output together."""
        return self._cluster.max_model_len

    @property
    def unfinished(self) -> int:
        """Requests that have not been answered: they are in the system, or to be tried again."""
        return self._cluster.unfinished + len(self._to_come)

    # ---- attempts

    def _try(self, attempt: Request, first: Request) -> None:
        attempt.id = next(self._numbers)
        self._open[attempt] = first
        for limit in self._limits:
            limit.watch(attempt)
        self._cluster.accept(attempt)

    def _left(self, attempt: Request) -> None:
        """Try again what has failed and may yet succeed; tell the client what has come of everything else."""
        first = self._open.pop(attempt)
        failed = attempt.generated < attempt.output_tokens
        hopeless = attempt.input_tokens >= self._cluster.max_model_len
        if failed and not hopeless and attempt.origin.attempt < self._client.max_retries:
            self._try_later(attempt, first)
        elif self.on_leave is not None:
            first.generated, first.finished_s = attempt.generated, attempt.finished_s
            self.on_leave(first)

    def _try_later(self, attempt: Request, first: Request) -> None:
        """Send an attempt's successor when the client has waited; one turned away failed as it arrived."""
        number = attempt.origin.attempt
        origin = attempt.origin._replace(attempt=number + 1)
        retry = Request(attempt.id, first.due_s, attempt.input_tokens, attempt.output_tokens, origin)
        failed_s = attempt.arrived_s if isnan(attempt.finished_s) else attempt.finished_s
        retry.sent_s = failed_s + self._client.wait_s(number, self._rng.random())
        retry.arrived_s = retry.sent_s + self._client.api_time_s
        self._to_come[retry] = first
        seen_s = max(retry.arrived_s - EARLY_S, self._clock.now + EARLY_S)
        self._clock.call_at(seen_s, partial(self._try_again, retry))

    def _try_again(self, retry: Request) -> None:
        self._try(retry, self._to_come.pop(retry))

    def _has_ended(self, attempt: Request) -> bool:
        return attempt not in self._open

    def _has_begun(self, attempt: Request) -> bool:
        return attempt not in self._open or not isnan(attempt.first_token_s)


class Limit:
    """A time after the sending of each request by which something must have happened to it.

    Requests are watched in the order of sending, so that their times come in that order, and one alarm is
    enough, at the first of them: what was met in time costs no event. The alarm rings ``EARLY_S`` late, so
    that rounding never decides whether a step that ends at the very time did so in time: it did.

    Args:
        clock: event time.
        limit_s: seconds from the sending.
        is_met: whether it has happened, and need not be watched any longer.
        passed: called with each request to which it has not, and with its time.
    """

    def __init__(
        self,
        clock: Clock,
        limit_s: float,
        is_met: Callable[[Request], bool],
        passed: Callable[[Request, float], None],
    ) -> None:
        self._clock = clock
        self._limit_s = limit_s
        self._is_met = is_met
        self._passed = passed
        self._watched: deque[Request] = deque()
        self._alarm = Alarm(self._ring)
        self._is_set = False

    def watch(self, request: Request) -> None:
        """Watch a request that was sent after those before it."""
        watched = self._watched
        while watched and self._is_met(watched[0]):
            watched.popleft()
        watched.append(request)
        if not self._is_set:
            self._set()

    def _ring(self) -> None:
        """Give up on those whose time has passed; wait for the first of the others."""
        watched, self._is_set = self._watched, False
        while watched:
            due_s = watched[0].sent_s + self._limit_s
            if not self._is_met(watched[0]) and due_s + EARLY_S > self._clock.now:
                break
            request = watched.popleft()
            if not self._is_met(request):
                self._passed(request, due_s)
        if watched and not self._is_set:
            self._set()

    def _set(self) -> None:
        """Set the alarm at the time of the first that is watched."""
        self._is_set = True
        rings_s = self._watched[0].sent_s + self._limit_s + EARLY_S
        self._clock.set(self._alarm, max(rings_s, self._clock.now), TIME_OUT)
