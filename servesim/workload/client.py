"""What the load generator does beside the workload: limits, warm-up, the way to the server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from servesim.check import MOST_S, Problem, quantity

#: As many requests as warm up anything, and few enough to run in seconds.
MOST_WARMUPS = 100_000


@dataclass(frozen=True)
class Client:
    """How requests leave the client, as ``vllm bench serve`` has it (vLLM, vllm/benchmarks/serve.py).

    ``max_concurrency`` is a semaphore over the arrivals: a request that is due waits in the client, first
    come, first served, while so many others are unanswered. It is sent after that, and TTFT and E2E begin
    with the sending; the wait is told apart. ``num_warmups`` copies of the first request, all sent at once
    behind that semaphore, run to completion before anything is measured. ``api_time_s`` passes between the
    sending of each request and its arrival at the router: HTTP, parsing, tokenizing.
    """

    max_concurrency: int | None = quantity("requests", at_least=1, at_most=1_000_000, default=None)
    num_warmups: int = quantity("requests", at_least=0, at_most=MOST_WARMUPS, default=0)
    api_time_s: float = quantity("s", at_least=0, at_most=MOST_S, default=0.0)

    def misfits(self, users: int | None) -> Iterator[Problem]:
        """Yield what does not go with traffic from so many users; None: it does not come from users."""
        if users is not None and self.max_concurrency is not None:
            message = (
                f"the {users:,} users of a closed loop limit it; set workload.arrivals.concurrency, "
                "or choose workload/arrivals=burst"
            )
            yield Problem("client.max_concurrency", self.max_concurrency, message)

    def misfits_of_sessions(self) -> Iterator[Problem]:
        """Yield what does not go with conversations."""
        if self.max_concurrency is not None:
            message = (
                "does not go with sessions, whose turns wait for answers; to limit them choose "
                "workload/arrivals=closed_loop"
            )
            yield Problem("client.max_concurrency", self.max_concurrency, message)
