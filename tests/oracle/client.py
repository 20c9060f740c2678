"""The oracle's clients: requests at times of their own, perhaps behind a semaphore, or users."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf

from servesim.workload.origin import ANYWHERE, Origin
from tests.oracle.job import Job

EARLY_S = 1e-7
"""A request that arrives at t is seen by a step boundary b when t <= b + EARLY_S."""

TIE_S = 1e-9
"""Moments of different replicas that are this close are a tie."""

Sent = tuple[float, int, int]
"""A request: when it is due (s), its input tokens and its output tokens."""

At = Callable[[float, Callable[[], None]], None]


@dataclass(frozen=True)
class Sending:
    """How requests are sent: each at its own time, unless there are ``users`` who wait for answers."""

    max_concurrency: int | None = None
    api_time_s: float = 0.0
    users: int | None = None
    ramp_up_s: float = 0.0
    think_time_s: float = 0.0
    timeout_s: float = inf
    ttft_timeout_s: float = inf
    origins: tuple[Origin, ...] = ()
    """Where the requests come from; those without one come from anywhere."""


OPEN_LOOP = Sending()


class Client:
    """Sends requests: ``at`` lets something happen at a time, ``deliver`` hands a request to the cluster."""

    def __init__(self, sending: Sending, at: At, deliver: Callable[[Job, float], None]) -> None:
        self.sending = sending
        self.at = at
        self.deliver = deliver
        self.unsent: list[Job] = []
        self.waiting: list[Job] = []
        self.on_the_way: list[Job] = []
        self.unanswered = 0
        self.answers: list[tuple[float, tuple[int, int]]] = []
        self.ties = 0

    def start(self, requests: Sequence[Sent]) -> None:
        """Arrange for all requests to be sent; nothing happens before 0."""
        origins = (*self.sending.origins, *[ANYWHERE] * len(requests))
        jobs = [
            Job(number, *request, origin)
            for number, (request, origin) in enumerate(zip(requests, origins, strict=False))
        ]
        users, ramp_up_s = self.sending.users, self.sending.ramp_up_s
        if users is None:
            for job in jobs:
                seen_s = max(job.due_s - EARLY_S, 0.0)
                self.at(seen_s, partial(self.due, job, seen_s))
            return
        self.unsent = jobs
        for user in range(users):
            start_s = ramp_up_s * user / users
            seen_s = max(start_s - EARLY_S, 0.0)
            self.at(seen_s, partial(self.next, start_s, seen_s))

    def due(self, job: Job, now: float) -> None:
        """Send a request whose time has come, or let it wait."""
        limit = self.sending.max_concurrency
        if limit is not None and self.unanswered >= limit:
            self.waiting.append(job)
            return
        self.unanswered += 1
        self.send(job, job.due_s, now)

    def next(self, sent_s: float, now: float) -> None:
        """Let a user send the next request, if there is one."""
        if self.unsent:
            job = self.unsent.pop(0)
            job.due_s = sent_s
            self.unanswered += 1
            self.send(job, sent_s, now)

    def send(self, job: Job, sent_s: float, now: float) -> None:
        """Send a request now; the cluster sees it when it arrives."""
        job.sent_s = sent_s
        job.arrived_s = sent_s + self.sending.api_time_s
        seen_s = job.arrived_s - EARLY_S
        if seen_s > now:
            self.on_the_way.append(job)
            self.at(seen_s, partial(self.arrive, job, seen_s))
        else:
            self.deliver(job, now)

    def arrive(self, job: Job, now: float) -> None:
        """Let a request that was under way arrive."""
        self.on_the_way.remove(job)
        self.deliver(job, now)

    def answered(self, job: Job, now: float) -> None:
        """Hear of an answer: it leaves room for the first that waits, or its user goes on."""
        place = job.prefill_replica, job.replica
        self.ties += any(now - then < TIE_S and where != place for then, where in self.answers)
        self.answers.append((now, place))
        heard_s = now + EARLY_S
        self.unanswered -= 1
        if self.sending.users is not None:
            sent_s = now + self.sending.think_time_s
            at_s = max(sent_s - EARLY_S, heard_s)
            self.at(at_s, partial(self.next, sent_s, at_s))
        elif self.waiting:
            self.unanswered += 1
            follower = self.waiting.pop(0)
            self.at(heard_s, partial(self.send, follower, max(now, follower.due_s), heard_s))
