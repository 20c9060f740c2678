"""A batch of requests as the client will send them: columns of equal length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from servesim.workload.origin import ANYWHERE, Origin

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

#: Rows that a workload yields at a time: enough for numpy to be fast, few enough to keep memory flat.
BATCH_ROWS = 8192

#: More than a machine can simulate in a day.
MOST_REQUESTS = 10**9


class Batch(NamedTuple):
    """Requests in order of sending: ``sent_s`` (seconds, sorted), ``input_tokens``, ``output_tokens``.

    ``origins`` has one entry per request, or is None where nothing is known of any of them.
    """

    sent_s: FloatArray
    input_tokens: IntArray
    output_tokens: IntArray
    origins: Sequence[Origin] | None = None

    @property
    def size(self) -> int:
        """Return the number of requests."""
        return len(self.sent_s)

    def rows(self, start: int, stop: int) -> Batch:
        """Return the requests ``start`` up to, but not including, ``stop``."""
        kept = slice(start, stop)
        origins = None if self.origins is None else self.origins[kept]
        return Batch(self.sent_s[kept], self.input_tokens[kept], self.output_tokens[kept], origins)

    def each(self) -> Iterator[tuple[float, int, int, Origin]]:
        """Yield the requests as numbers of Python, each with its origin."""
        origins = repeat(ANYWHERE, self.size) if self.origins is None else self.origins
        return zip(*(column.tolist() for column in self[:3]), origins, strict=True)

    @staticmethod
    def joined(batches: Iterable[Batch]) -> Batch:
        """Return the requests of all batches in one, without their origins."""
        sent_s, inputs, outputs = zip(*(batch[:3] for batch in batches), strict=True)
        return Batch(np.concatenate(sent_s), np.concatenate(inputs), np.concatenate(outputs))

    def until(self, requests: int | None, duration_s: float | None) -> Batch:
        """Return the requests up to the first limit reached: their number, or the end of the sending.

        ``duration_s`` is exclusive: a request whose moment is the end itself is not sent.
        """
        sent = self.size if duration_s is None else int(np.searchsorted(self.sent_s, duration_s))
        return self.rows(0, sent if requests is None else min(sent, requests))
