"""A run that was measured, whatever tool measured it; a simulated run takes the same form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Times of sending up to this (s) are of the run's own clock and stay; later ones are some machine's.
OWN_CLOCK_S = 3600.0

#: Latencies in the order in which they are told.
METRICS = ("ttft", "tpot", "itl", "e2e")
#: What is told of each latency.
STATISTICS = ("mean", "p50", "p90", "p99")
#: Rates of a run: successful requests, and their output tokens, per second of its span.
THROUGHPUT, RATES = "throughput", ("requests", "output_tokens")

Figure = tuple[str, str]
"""A metric and a statistic of it: ("ttft", "p50"), ("throughput", "requests")."""


@dataclass(frozen=True, eq=False)
class Measured:
    """The requests of a run in order of sending, with what became of each; NaN is what is not known.

    Times are in seconds and mean what ``vllm bench serve`` means by them: TTFT from the sending to the first
    token, E2E to the last, ITL the gaps between tokens, pooled.

    Attributes:
        source: what the run is called: the name of its file.
        format: what wrote it.
        sent_s: when each request was sent.
        input_tokens: tokens of each prompt.
        output_tokens: tokens of each answer.
        ttft_s: time to first token.
        e2e_s: end-to-end latency.
        itl_s: all gaps between tokens, in no order; None where they were not kept.
        client_queue_s: what each request waited in the client before it was sent; None where not kept.
        max_concurrency: the most requests that the client had under way; None: no limit, or not known.
        request_rate: requests per second that the client was told to send; inf: all at once.
        model: the model as the file names it.
        duration_s: how long the run took by its own account.
        failed: requests that failed, which are in none of the columns.
        drawn: whether the times of sending are made up, as the file does not have them.
        tensor_parallel_size: GPUs of each engine, as the file says; None where it does not.
        num_gpus: all GPUs, as the file says.
        ramp_up_s: over what time users began evenly, as their times of sending say (s).
        own_times: why the run is replayed at its times although users sent it; empty where it is not.
        notes: what to know of the reading, one sentence each.
        labels: of rows of a table, the columns that tell its runs apart, and their values.
        stated: figures by metric and statistic, as a file states them that has no requests.

    """

    source: str
    format: str
    sent_s: Floats
    input_tokens: Integers
    output_tokens: Integers
    ttft_s: Floats
    e2e_s: Floats
    itl_s: Floats | None = None
    client_queue_s: Floats | None = None
    max_concurrency: int | None = None
    request_rate: float | None = None
    model: str | None = None
    duration_s: float | None = None
    failed: int = 0
    drawn: bool = False
    tensor_parallel_size: int | None = None
    num_gpus: int | None = None
    ramp_up_s: float = 0.0
    own_times: str = ""
    notes: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    stated: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def requests(self) -> int:
        """Return how many requests succeeded."""
        return len(self.sent_s)

    @property
    def tpot_s(self) -> Floats:
        """Return (E2E - TTFT) / (output tokens - 1); NaN for one token, or an end before the first token."""
        further = self.output_tokens - 1
        rest = self.e2e_s - self.ttft_s
        known = (further > 0) & (rest >= 0)
        tpot_s: Floats = np.divide(rest, further, out=np.full(self.requests, nan), where=known)
        return tpot_s

    def column(self, metric: str) -> Floats:
        """Return a latency (s) of each request: ``ttft``, ``tpot`` or ``e2e``."""
        values: Floats = getattr(self, f"{metric}_s")
        return values

    def sample(self, metric: str) -> Floats:
        """Return the known values (s) of a latency: of each request, or for ``itl`` of all gaps."""
        if metric == "itl":
            return np.empty(0) if self.itl_s is None else self.itl_s
        values = self.column(metric)
        return values[~np.isnan(values)]

    @property
    def span_s(self) -> float:
        """Return the time from the first sending to the last token; what the run says of it otherwise."""
        ends = (self.sent_s + self.e2e_s)[~np.isnan(self.e2e_s)]
        if len(ends):
            return float(ends.max() - self.sent_s.min())
        return nan if self.duration_s is None else self.duration_s

    @property
    def offered_rps(self) -> float | None:
        """Return requests per second: as the client was told, or else between first and last sending."""
        if self.request_rate is not None and self.request_rate < inf:
            return self.request_rate
        span_s = float(self.sent_s[-1] - self.sent_s[0]) if self.requests > 1 else 0.0
        return (self.requests - 1) / span_s if span_s > 0 else None

    @property
    def due_s(self) -> Floats | None:
        """Return when each request was due, had the client not held it back; None where that is not known.

        It is where the client limits how many are under way and the file says what each waited for it.
        """
        if self.max_concurrency is None or self.client_queue_s is None or self.of_users:
            return None
        due_s: Floats = np.maximum.accumulate(np.maximum(self.sent_s - self.client_queue_s, 0.0))
        return due_s

    @property
    def of_users(self) -> bool:
        """Tell whether users sent it: everything was due at once, and the number under way limited."""
        return self.max_concurrency is not None and self.request_rate == inf

    @property
    def closed_loop(self) -> bool:
        """Tell whether it is replayed by its users, each of whom sends the next when the last has ended."""
        return self.of_users and not self.own_times

    @property
    def mean_lengths(self) -> bool:
        """Tell whether the file has no requests, and all that are sent have the mean lengths."""
        return bool(self.stated)


def in_order(sent_s: Floats, **columns: Any) -> dict[str, Any]:
    """Return the columns in order of sending; times of another clock than the run's begin at 0.

    A column of None stays None. Requests at the same time keep their order.
    """
    order = np.argsort(sent_s, kind="stable")
    times = sent_s[order]
    if len(times) and not 0 <= times[0] <= OWN_CLOCK_S:
        times = times - times[0]
    return {"sent_s": times} | {
        name: None if column is None else column[order] for name, column in columns.items()
    }
