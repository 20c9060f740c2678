"""The orders of the oracle's queue: everybody who waits is looked at, whenever one is to be chosen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from servesim.engine.queue_order.fair import Fair
from servesim.engine.queue_order.keyed import EarliestDeadline, ShortestFirst
from servesim.engine.queue_order.order import QueueOrder
from servesim.engine.queue_order.priority import Priority
from tests.oracle.job import Job


class Order:
    """First come, first served: whoever waits stands in ``waiting`` in the order of coming."""

    chooses_victims = False
    """Whether another than the last running request may be preempted."""

    throws_out = False
    """Whether a waiting request may throw running ones out."""

    def __init__(self, options: Any) -> None:
        self.options = options

    def arrived(self, job: Job, waiting: Sequence[Job]) -> None:
        """Take note of an arrival, ``waiting`` being those who wait already."""

    def gone(self, job: Job, waiting: Sequence[Job]) -> None:
        """Take note that a waiting request was given up, ``waiting`` being those who still wait."""

    def admitted(self, job: Job) -> None:
        """Take note of an admission."""

    def decoded(self, job: Job) -> None:
        """Take note of a token emitted by a decode."""

    def head(self, waiting: Sequence[Job]) -> Job:
        """Return who is tried next."""
        return waiting[0]

    def victim(self, running: Sequence[Job]) -> Job:
        """Return who is preempted."""
        return running[-1]


class ByKey(Order):
    """The least of something first; of equals the first in the queue."""

    def __init__(self, options: Any, key: Callable[[Job], float]) -> None:
        super().__init__(options)
        self.key = key

    def head(self, waiting: Sequence[Job]) -> Job:
        """Return who is tried next."""
        return min(waiting, key=self.key)


class ByClass(ByKey):
    """The best class first; the last of the worst class is preempted."""

    chooses_victims = True

    def __init__(self, options: Any) -> None:
        super().__init__(options, lambda job: job.origin.priority)
        self.throws_out = options.preempt

    def victim(self, running: Sequence[Job]) -> Job:
        """Return who is preempted."""
        return max(reversed(running), key=self.key)


class Counters(Order):
    """The tenant with the least counter first, of its requests the first in the queue."""

    def __init__(self, options: Fair) -> None:
        super().__init__(options)
        self.counters: Counter[int] = Counter()
        self.returning: list[int] = []
        self.last: int | None = None

    def charge(self, job: Job, service: float) -> None:
        """Raise the counter of a tenant."""
        self.counters[job.origin.tenant] += service / job.origin.weight

    def arrived(self, job: Job, waiting: Sequence[Job]) -> None:
        """Note a tenant that comes back."""
        tenant = job.origin.tenant
        if all(other.origin.tenant != tenant for other in waiting):
            self.returning.append(tenant)

    def gone(self, job: Job, waiting: Sequence[Job]) -> None:
        """Forget that a tenant has come back who has gone again."""
        tenant = job.origin.tenant
        if tenant in self.returning and all(other.origin.tenant != tenant for other in waiting):
            self.returning.remove(tenant)

    def admitted(self, job: Job) -> None:
        """Charge a prompt and the token behind it."""
        if not job.preemptions:
            self.charge(job, self.options.input_weight * job.input_tokens)
        self.charge(job, self.options.output_weight)
        self.last = job.origin.tenant

    def decoded(self, job: Job) -> None:
        """Charge a token."""
        self.charge(job, self.options.output_weight)

    def head(self, waiting: Sequence[Job]) -> Job:
        """Return who is tried next, after lifting who came back."""
        there = {job.origin.tenant for job in waiting} - set(self.returning)
        for tenant in self.returning:
            if there:
                floor = min(self.counters[other] for other in there)
            else:
                floor = self.counters[tenant if self.last is None else self.last]
            self.counters[tenant] = max(self.counters[tenant], floor)
            there.add(tenant)
        self.returning = []
        firsts = {job.origin.tenant: place for place, job in reversed(list(enumerate(waiting)))}
        return waiting[min((self.counters[tenant], place) for tenant, place in firsts.items())[1]]


def order_of(options: QueueOrder) -> Order:
    """Return the oracle's order with servesim's options."""
    if isinstance(options, ShortestFirst):
        words = {
            "input": lambda job: job.input_tokens,
            "output": lambda job: job.output_tokens,
            "total": lambda job: job.input_tokens + job.output_tokens,
        }
        return ByKey(options, words[options.by])
    if isinstance(options, EarliestDeadline):
        return ByKey(options, lambda job: job.arrived_s + job.origin.slack_s)
    if isinstance(options, Priority):
        return ByClass(options)
    return Counters(options) if isinstance(options, Fair) else Order(options)
