"""Synthetic traffic: an arrival process and a distribution of lengths."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from servesim.check import MOST_S, Problem, quantity
from servesim.streams import Streams
from servesim.workload.arrivals import Burst, ClosedLoop, OpenLoop, moments
from servesim.workload.arriving import Arriving
from servesim.workload.batch import BATCH_ROWS, MOST_REQUESTS, Batch, FloatArray
from servesim.workload.lengths import Lengths
from servesim.workload.notes import Notes
from servesim.workload.tenant import Tenants, draw_tenants, tenant_origins
from servesim.workload.vllm_bench import VllmBench

#: Requests of a synthetic workload that names no limit.
DEFAULT_REQUESTS = 2000


@dataclass(frozen=True)
class Synthetic(Arriving):
    """Requests drawn from an arrival process and a distribution of lengths, in streams of their own.

    The sending ends with ``requests`` or after ``duration_s``, whichever is reached first; without either,
    after 2,000 requests.
    """

    lengths: Lengths
    requests: int | None = quantity("requests", at_least=1, at_most=MOST_REQUESTS, default=None)
    duration_s: float | None = quantity("s", above=0, at_most=MOST_S, default=None)
    tenants: Tenants = quantity("tenants by name", factory=dict)

    #: whether what one request leaves in a cache may be found by another
    shares_prefixes: ClassVar[bool] = False
    notes: ClassVar[Notes | None] = None
    hints: ClassVar[Mapping[str, str]] = {
        "rate_rps": "set workload.arrivals.rate_rps",
        "path": "choose workload=trace",
        "rate_scale": "set workload.arrivals.rate_rps, or choose workload=trace",
    }

    def problems(self) -> Iterator[Problem]:
        """Yield a problem where the requests would take longer to send than a clock shows, or never end."""
        counted = isinstance(self.arrivals, (Burst, VllmBench))
        if counted and self.requests is None and self.duration_s is not None:
            message = "must be given beside duration_s: these arrivals are for a number of requests"
            yield Problem("requests", None, message)
            return
        if isinstance(self.arrivals, ClosedLoop) or self.duration_s is not None:
            return
        requests = self._most_requests()
        if self._last_s(self.arrivals, requests) > MOST_S:
            message = (
                f"{requests:,} requests take more than {MOST_S:g} s to send; "
                "set workload.duration_s, or a higher rate"
            )
            yield Problem("arrivals", None, message)

    def batches(self, streams: Streams) -> Iterator[Batch]:
        """Yield the requests in order of sending, at most ``BATCH_ROWS`` at a time.

        In a closed loop every ``sent_s`` is 0: the client decides when to send, and it is also the client
        that stops at ``duration_s`` (the batches are endless where that is the only limit).
        """
        left = self._most_requests()
        normals = streams.stream("lengths")
        draw = draw_tenants(self.tenants, streams) if self.tenants else None
        known = tenant_origins(self.tenants)
        for sent_s in self._moments(streams):
            lengths = self.lengths.tokens(normals.standard_normal((BATCH_ROWS, 2)))
            origins = [known[place] for place in draw(BATCH_ROWS)] if draw else None
            batch = Batch(sent_s, *lengths, origins).until(left, self.duration_s)
            if batch.size:
                yield batch
            left -= batch.size
            if batch.size < BATCH_ROWS:
                return

    def _most_requests(self) -> int:
        if self.requests is not None:
            return self.requests
        return DEFAULT_REQUESTS if self.duration_s is None else sys.maxsize

    def _last_s(self, arrivals: OpenLoop | VllmBench, requests: int) -> float:
        """Return about when the last of so many requests is due (seconds)."""
        if isinstance(arrivals, VllmBench):
            return arrivals.longest_s(requests)
        return float(arrivals.times(np.array([float(requests)]))[0])

    def _moments(self, streams: Streams) -> Iterator[FloatArray]:
        """Yield the moments of sending (seconds), ``BATCH_ROWS`` at a time, without end."""
        fresh = partial(streams.stream, "arrivals")
        if isinstance(self.arrivals, VllmBench):
            yield from self.arrivals.moments(fresh, self._most_requests(), BATCH_ROWS)
            return
        while isinstance(self.arrivals, ClosedLoop):
            yield np.zeros(BATCH_ROWS)
        yield from moments(self.arrivals, fresh(), BATCH_ROWS)
