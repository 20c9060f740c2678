"""Requests of a run that was measured, sent again: at its times, all at once, or by users."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from servesim.check import MOST_S, Problem, quantity
from servesim.streams import Streams
from servesim.workload.arrivals import ClosedLoop
from servesim.workload.batch import BATCH_ROWS, MOST_REQUESTS, Batch, FloatArray, IntArray
from servesim.workload.lengths import MOST_TOKENS
from servesim.workload.notes import Notes


@dataclass(frozen=True, eq=False)
class Replay:
    """Requests in order of sending, with the times (s) and lengths of a measured run.

    ``source`` says where they come from; ``requests`` ends the sending early. ``at_once``: the times only
    order the requests, and all are due at 0. With ``client.max_concurrency=N`` that is the closed loop of
    ``vllm bench serve --request-rate inf --max-concurrency N`` (vLLM, vllm/benchmarks/serve.py). With
    ``users`` they send the requests in this order, each the next when its last answer has ended.
    """

    sent_s: FloatArray
    input_tokens: IntArray
    output_tokens: IntArray
    source: str = quantity(default="measured")
    at_once: bool = quantity(default=False)
    requests: int | None = quantity("requests", at_least=1, at_most=MOST_REQUESTS, default=None)
    users: ClosedLoop | None = quantity(default=None)

    shares_prefixes: ClassVar[bool] = False
    duration_s: ClassVar[float | None] = None
    notes: ClassVar[Notes | None] = None

    @property
    def concurrency(self) -> int | None:
        """Return the number of users; None where requests do not come from users."""
        return self.users.concurrency if self.users else None

    @property
    def open_loop(self) -> bool:
        """Return whether requests come at times of their own: not all at once, nor from users."""
        return not self.at_once and self.users is None

    def batches(self, streams: Streams) -> Iterator[Batch]:
        """Yield the requests in order of sending, at most ``BATCH_ROWS`` at a time; nothing is drawn."""
        sent_s = self.sent_s if self.open_loop else np.zeros_like(self.sent_s)
        whole = Batch(sent_s, self.input_tokens, self.output_tokens).until(self.requests, None)
        for start in range(0, whole.size, BATCH_ROWS):
            yield whole.rows(start, start + BATCH_ROWS)

    def problems(self) -> Iterator[Problem]:
        """Yield what keeps the columns from being requests in order of sending."""
        columns = {name: getattr(self, name) for name in ("sent_s", "input_tokens", "output_tokens")}
        if not len(self.sent_s) or len({len(column) for column in columns.values()}) != 1:
            yield Problem("sent_s", len(self.sent_s), "all columns must have as many rows, and one at least")
            return
        if not np.all(np.diff(self.sent_s) >= 0) or self.sent_s[0] < 0 or not self.sent_s[-1] <= MOST_S:
            yield Problem("sent_s", None, f"must be in order, from 0 to {MOST_S:g} (s)")
        for name in ("input_tokens", "output_tokens"):
            low, high = int(columns[name].min()), int(columns[name].max())
            if low < 1 or high > MOST_TOKENS:
                wrong = low if low < 1 else high
                yield Problem(name, wrong, f"must be at least 1 and at most {MOST_TOKENS:,} (tokens)")

    def described(self) -> dict[str, Any]:
        """Return what a configuration says of it: its source and how it is sent, not each request."""
        said = {"source": self.source, "requests": len(self.sent_s), "at_once": self.at_once}
        return said | ({"arrivals": {"kind": "closed_loop"} | asdict(self.users)} if self.users else {})
