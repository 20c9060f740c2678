"""Waiting requests by tenant, and what each tenant has been served."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from math import inf

from servesim.engine.decodes import Decodes
from servesim.workload.request import Request

#: Counters are whole numbers of this share of a token, so that they add up exactly in any order.
UNIT = 2.0**-20


class Account:
    """What one tenant has been served, and who of it waits.

    ``emitted`` + ``decoding`` x s tokens have been emitted by step s of the replica: each sequence that
    decodes adds one in every step, so only their coming and going is counted.
    """

    __slots__ = ("decoding", "emitted", "input_rate", "input_tokens", "lift", "output_rate", "waiting")

    def __init__(self, input_rate: float, output_rate: float) -> None:
        self.input_rate, self.output_rate = round(input_rate / UNIT), round(output_rate / UNIT)
        self.input_tokens = self.emitted = self.decoding = self.lift = 0
        #: (place in the order of coming, request)
        self.waiting: deque[tuple[int, Request]] = deque()

    def counter(self, step: int) -> int:
        """Return the virtual token counter at a step of the replica."""
        outputs = self.emitted + self.decoding * step
        return self.lift + self.input_rate * self.input_tokens + self.output_rate * outputs

    def rank(self, step: int) -> tuple[int, int]:
        """Return what the least of makes a tenant the next: its counter, then who of it comes next."""
        return self.counter(step), self.waiting[0][0]

    def steps_to_pass(self, head: Account, step: int) -> float:
        """Return after how many steps, at least one, this tenant comes before the one that is next now."""
        gain = self.output_rate * self.decoding - head.output_rate * head.decoding
        if gain >= 0:
            return inf
        (own, place), (least, first) = self.rank(step), head.rank(step)
        lead = own - least
        return max(-(lead // gain) if place < first else lead // -gain + 1, 1)


class FairQueue:
    """Waiting requests, those of the tenant with the least counter first; a question takes O(tenants).

    A tenant that comes back is lifted when the replica next looks at its queue, to the counters of then.

    Args:
        input_weight: by how much a token of a prompt raises the counter of a tenant of weight 1.
        output_weight: by how much a token generated does.
        block_size: tokens per KV block.
    """

    def __init__(self, input_weight: float, output_weight: float, block_size: int) -> None:
        self.decodes = FairDecodes(block_size, self)
        self._weights = input_weight, output_weight
        self._accounts: dict[int, Account] = {}
        #: the tenants that have requests waiting
        self._queued: dict[Account, None] = {}
        #: those of them that have come back and are to be lifted, in the order of coming
        self._returning: dict[Account, None] = {}
        #: the tenant of the request that was admitted last
        self._last: Account | None = None
        self._length = self._arrivals = self._returns = 0

    def account(self, request: Request) -> Account:
        """Return the account of a request's tenant."""
        origin = request.origin
        account = self._accounts.get(origin.tenant)
        if account is None:
            rates = (weight / origin.weight for weight in self._weights)
            account = self._accounts[origin.tenant] = Account(*rates)
        return account

    # ---- a deque, as far as the engine asks -------------------------------------------------------

    def append(self, request: Request) -> None:
        """Take an arrival in."""
        account = self.account(request)
        self._arrivals += 1
        if not account.waiting:
            self._queued[account] = self._returning[account] = None
        account.waiting.append((self._arrivals, request))
        self._length += 1

    def appendleft(self, request: Request) -> None:
        """Take a preempted request back; its tenant has not been away."""
        account = self.account(request)
        self._returns -= 1
        self._queued[account] = None
        account.waiting.appendleft((self._returns, request))
        self._length += 1

    def popleft(self) -> Request:
        """Remove the head, charge its tenant for it, and return it."""
        account = self._next()
        _, request = account.waiting.popleft()
        self._leave(account)
        self._last = account
        if not request.preemptions:
            account.input_tokens += request.input_tokens
        account.emitted += 1
        return request

    def remove(self, request: Request) -> None:
        """Remove a request, wherever it stands, and charge nobody."""
        account = self.account(request)
        account.waiting.remove(next(entry for entry in account.waiting if entry[1] is request))
        self._leave(account)

    def begins(self, request: Request) -> bool:
        """Say whether a request that has just come is its tenant's first, so that it may become the head."""
        return len(self.account(request).waiting) == 1

    def __getitem__(self, place: int) -> Request:
        """Return the head."""
        if place:
            raise IndexError("only the head of this queue has a place")
        return self._next().waiting[0][1]

    def __len__(self) -> int:
        """Return how many requests wait."""
        return self._length

    def __iter__(self) -> Iterator[Request]:
        """Yield the requests in the order of coming."""
        entries = sorted(entry for account in self._queued for entry in account.waiting)
        return (request for _, request in entries)

    # ---- counters ---------------------------------------------------------------------------------

    def steps_to_change(self) -> float:
        """Return after how many steps another tenant than now comes next, if no request comes or goes.

        Where tenants are still to be lifted, the replica has not looked, as it has no place for anybody.
        """
        if len(self._queued) < 2 or self._returning:
            return inf
        head, step = self._next(), self.decodes.step
        return min(account.steps_to_pass(head, step) for account in self._queued)

    def _next(self) -> Account:
        """Return the account of the tenant that comes next."""
        if self._returning:
            self._lift()
        step = self.decodes.step
        return min(self._queued, key=lambda account: account.rank(step))

    def _lift(self) -> None:
        """Lift the tenants that have come back, each to the least counter of those before it."""
        step = self.decodes.step
        present = [account.counter(step) for account in self._queued if account not in self._returning]
        least = min(present) if present else self._last.counter(step) if self._last is not None else 0
        for account in self._returning:
            account.lift += max(least - account.counter(step), 0)
            if not present:
                present = [least := account.counter(step)]
        self._returning.clear()

    def _leave(self, account: Account) -> None:
        """Take note that a request of a tenant has left the queue."""
        self._length -= 1
        if not account.waiting:
            del self._queued[account]
            self._returning.pop(account, None)


class FairDecodes(Decodes):
    """Decoding sequences whose tokens are charged to their tenants.

    Which tenant comes next changes as they decode; that, too, ends a leap.
    """

    __slots__ = ("_queue",)

    def __init__(self, block_size: int, queue: FairQueue) -> None:
        super().__init__(block_size)
        self._queue = queue

    def join(self, request: Request) -> None:
        """Add a sequence that has just emitted a token and has more to come."""
        super().join(request)
        self._count(request, 1)

    def leave(self, request: Request) -> int:
        """Remove a sequence before its end, bring its counters up to date, and return its spare blocks."""
        spare = super().leave(request)
        self._count(request, -1)
        return spare

    def pop_finished(self) -> list[Request]:
        """Remove and return the sequences that finish at the present step, in the order they joined."""
        finished = super().pop_finished()
        for request in finished:
            self._count(request, -1)
        return finished

    def _count(self, request: Request, change: int) -> None:
        account = self._queue.account(request)
        account.decoding += change
        account.emitted -= change * self.step

    def steps_to_finish(self) -> int:
        """Return the number of steps until a sequence finishes, or another tenant comes next."""
        return int(min(super().steps_to_finish(), self._queue.steps_to_change()))
