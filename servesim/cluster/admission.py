"""Admission control: which requests a cluster turns away at once, before they are queued.

A rule is a plain dataclass; ``start`` hands it the engines of the pool that requests enter, and returns the
function that is asked for each request when the router has picked its replica. Any object with such a method
serves as a rule.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Literal, Protocol

from servesim.check import MOST_S, quantity
from servesim.engine.log import NO_REASON, OVER_SLO, QUEUE_FULL
from servesim.workload.request import Request

#: Says why a request that arrives is turned away at a replica (its place in the pool), as an index into
#: REASONS; 0: it is not.
Gate = Callable[[Request, int], int]

#: Requests that left the queue, whose pace is that of the queue.
RECENT = 64


class Engine(Protocol):
    """What a rule may ask of an engine."""

    @property
    def waiting(self) -> Collection[Request]:
        """The requests that wait to be scheduled."""

    @property
    def running(self) -> Collection[Request]:
        """The requests that have been."""

    def full_step(self) -> tuple[float, int]:
        """Return the seconds of a step that computes as much of prompts as may be, and how many tokens."""

    def prompt_tokens_ahead(self) -> int:
        """Return the tokens that are to be computed before the prompt of a request that is queued now."""


class Admission(Protocol):
    """What a cluster asks of a rule."""

    def start(self, engines: Sequence[Engine], ttft_s: float | None) -> Gate:
        """Return the function that judges each request.

        Args:
            engines: those of the pool, in the order of their replicas.
            ttft_s: the limit on TTFT of the service level objective.
        """
        ...


@dataclass(frozen=True)
class QueueLimit:
    """Turns a request away where ``max_queued`` wait to be scheduled: at its replica, or in the whole pool.

    Those that the engine has preempted wait, too.
    """

    max_queued: int = quantity("requests", at_least=1, at_most=1_000_000_000, default=64)
    of: Literal["replica", "pool"] = quantity(default="replica")

    def start(self, engines: Sequence[Engine], ttft_s: float | None) -> Gate:
        """Return the function that counts who waits."""

        def at_replica(request: Request, index: int) -> int:
            return QUEUE_FULL if len(engines[index].waiting) >= self.max_queued else NO_REASON

        def in_pool(request: Request, index: int) -> int:
            waiting = sum(len(engine.waiting) for engine in engines)
            return QUEUE_FULL if waiting >= self.max_queued else NO_REASON

        return at_replica if self.of == "replica" else in_pool


@dataclass(frozen=True)
class TtftSlo:
    """Turns a request away whose predicted TTFT is above ``ttft_s``; null: the limit of the SLO.

    The prediction is that of :class:`Forecast`, and as good: under overload the median of those admitted
    comes just within the limit, and some of them come late; a ``ttft_s`` below the SLO leaves room for that.
    An idle replica never turns anything away.
    """

    ttft_s: float | None = quantity("s", above=0, at_most=MOST_S, default=None)

    def start(self, engines: Sequence[Engine], ttft_s: float | None) -> Gate:
        """Return the function that looks ahead at the replica of each request."""
        limit_s = ttft_s if self.ttft_s is None else self.ttft_s
        if limit_s is None:
            raise ValueError("there is no limit on TTFT")
        forecasts = [Forecast(engine) for engine in engines]

        def judge(request: Request, index: int) -> int:
            forecast, engine = forecasts[index], engines[index]
            if (engine.running or engine.waiting) and forecast.ttft_s(request) > limit_s:
                return OVER_SLO
            forecast.follow(request)
            return NO_REASON

        return judge


class Forecast:
    """Predicts the TTFT of a request that arrives at a replica, as the larger of two estimates.

    *Compute*: the tokens of all prompts that wait or are partly computed, and of its own, at the throughput
    of steps that are filled up to ``max_num_batched_tokens`` beside the sequences that decode now.

    *Places*: where the head of the queue has waited for longer than such a step, it is sequences or KV blocks
    that are missing, and requests are scheduled as others end. The queue is then left at the mean pace of the
    last 64 that were scheduled while a queue stood behind them: (those who wait + 1) x that mean gap.

    Args:
        engine: the engine of the replica.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        #: those admitted and not known to be scheduled, in order of arrival
        self._followed: deque[Request] = deque()
        self._gaps_s: deque[float] = deque(maxlen=RECENT)
        self._scheduled_s = 0.0

    def follow(self, request: Request) -> None:
        """Take note of a request that was admitted."""
        self._followed.append(request)

    def ttft_s(self, request: Request) -> float:
        """Return the time from the arrival of a request to its first token, if it was admitted now."""
        self._look()
        full_step_s, tokens = self._engine.full_step()
        compute_s = full_step_s * (self._engine.prompt_tokens_ahead() + request.input_tokens) / tokens
        waiting = self._engine.waiting
        held = self._followed and request.arrived_s - self._followed[0].arrived_s > full_step_s
        if not held or not waiting or not self._gaps_s:
            return compute_s
        return max(compute_s, (len(waiting) + 1) * sum(self._gaps_s) / len(self._gaps_s))

    def _look(self) -> None:
        """Note the gaps between those that were scheduled since, each of which waited for the one before."""
        followed = self._followed
        while followed and not (isnan(followed[0].queue_s) and isnan(followed[0].finished_s)):
            request = followed.popleft()
            if isnan(request.queue_s):
                continue  # its client hung up before it was scheduled
            scheduled_s = request.arrived_s + request.queue_s
            if request.arrived_s < self._scheduled_s:
                self._gaps_s.append(max(scheduled_s - self._scheduled_s, 0.0))
            self._scheduled_s = max(scheduled_s, self._scheduled_s)
