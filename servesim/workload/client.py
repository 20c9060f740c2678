"""What the client does beside the workload: limits, warm-up, the way to the server, patience."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from servesim.check import MOST_S, Problem, quantity

#: As many requests as warm up anything, and few enough to run in seconds.
MOST_WARMUPS = 100_000
#: Retries of a request, and growth of the wait between two, beyond any client's.
MOST_RETRIES, MOST_GROWTH = 100, 100


@dataclass(frozen=True)
class Client:
    """How requests leave the client, as ``vllm bench serve`` has it (vLLM, vllm/benchmarks/serve.py).

    ``max_concurrency`` is a semaphore over the arrivals: a request that is due waits in the client, first
    come, first served, while so many others are unanswered. It is sent after that, and TTFT and E2E begin
    with the sending; the wait is told apart. ``num_warmups`` copies of the first request, all sent at once
    behind that semaphore, run to completion before anything is measured. ``api_time_s`` passes between the
    sending of each request and its arrival at the router: HTTP, parsing, tokenizing.

    It hangs up when an answer is not complete ``timeout_s`` after the sending, or has not begun after
    ``ttft_timeout_s``. What failed so, or was turned away by admission control, it sends again, at most
    ``max_retries`` times: the first time after ``backoff_s``, each further time after ``backoff_factor``
    times the wait before; of each wait up to a share of ``backoff_jitter`` is left out at random.
    """

    max_concurrency: int | None = quantity("requests", at_least=1, at_most=1_000_000, default=None)
    num_warmups: int = quantity("requests", at_least=0, at_most=MOST_WARMUPS, default=0)
    api_time_s: float = quantity("s", at_least=0, at_most=MOST_S, default=0.0)
    timeout_s: float | None = quantity("s", above=0, at_most=MOST_S, default=None)
    ttft_timeout_s: float | None = quantity("s", above=0, at_most=MOST_S, default=None)
    max_retries: int = quantity("retries of a request", at_least=0, at_most=MOST_RETRIES, default=0)
    backoff_s: float = quantity("s", at_least=0, at_most=MOST_S, default=1.0)
    backoff_factor: float = quantity("factor", at_least=1, at_most=MOST_GROWTH, default=2.0)
    backoff_jitter: float = quantity("share of the wait", at_least=0, at_most=1, default=0.0)

    @property
    def is_impatient(self) -> bool:
        """Whether it ever hangs up or tries again."""
        return self.timeout_s is not None or self.ttft_timeout_s is not None or self.max_retries > 0

    def wait_s(self, attempt: int, chance: float) -> float:
        """Return how long it waits after the failure of an attempt, the first being 0, in s.

        backoff_s x backoff_factor^attempt x (1 - backoff_jitter x chance), ``chance`` being uniform in
        [0, 1): with a jitter of 1 this is the "full jitter" of Brooker, "Exponential backoff and jitter",
        AWS Architecture Blog 2015.
        """
        longest_s = min(self.backoff_s * self.backoff_factor**attempt, MOST_S)
        return longest_s * (1.0 - self.backoff_jitter * chance)

    def problems(self) -> Iterator[Problem]:
        """Yield the time-outs that no request could meet."""
        for name in ("timeout_s", "ttft_timeout_s"):
            limit_s = getattr(self, name)
            if limit_s is not None and limit_s <= self.api_time_s:
                message = f"must be above api_time_s, {self.api_time_s:g}, or no request arrives (s)"
                yield Problem(name, limit_s, message)

    def misfits(self, users: int | None) -> Iterator[Problem]:
        """Yield what does not go with traffic from so many users; None: it does not come from users."""
        if users is not None and self.max_concurrency is not None:
            message = (
                f"the {users:,} users of a closed loop limit it; set workload.arrivals.concurrency, "
                "or choose workload/arrivals=burst"
            )
            yield Problem("client.max_concurrency", self.max_concurrency, message)

    def misfits_of_sessions(self, recorded: bool) -> Iterator[Problem]:
        """Yield what does not go with conversations, which are those of a trace or drawn."""
        if self.max_concurrency is not None:
            rows = "send every row at its time with workload.follow_turns=false, or " if recorded else ""
            message = (
                f"does not go with sessions, whose turns wait for answers; to limit them {rows}choose "
                "workload=sessions workload/arrivals=closed_loop"
            )
            yield Problem("client.max_concurrency", self.max_concurrency, message)
