"""How much service each tenant has had by any moment, and when all of them wanted more."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from servesim.results.records import Records
from servesim.results.window import Window, left_over

Floats = NDArray[np.float64]

#: What tokens count in the service of a tenant (Sheng et al., OSDI 2024): a generated one twice.
INPUT_WEIGHT, OUTPUT_WEIGHT = 1.0, 2.0


@dataclass(frozen=True)
class Service:
    """The service of some requests over time.

    A prompt counts when its request is first scheduled, the first token when it leaves, and the others evenly
    from then up to the last one, or up to the end of a run that is cut before; those of a request that timed
    out count with the first.

    Attributes:
        queued_s: when each request arrives.
        scheduled_s: when it is first scheduled; infinite: never.
        waited_s: until when it waits for that.
        first_s: when its first token leaves; infinite: never.
        last_s: when its last one does.
        input_tokens: tokens of its prompt.
        further_tokens: tokens generated after the first.
    """

    queued_s: Floats
    scheduled_s: Floats
    waited_s: Floats
    first_s: Floats
    last_s: Floats
    input_tokens: Floats
    further_tokens: Floats

    @classmethod
    def of(cls, records: Records, run: Window) -> Service:
        """Return the service of all requests of a run."""
        names = ("sent_s", "routing_s", "queue_s", "ttft_s", "e2e_s", "input_tokens", "generated_tokens")
        columns = (records.request_table.column(name) for name in names)
        sent_s, routing_s, queue_s, ttft_s, e2e_s, inputs, generated = columns
        queued_s = sent_s + np.nan_to_num(routing_s)
        scheduled_s = np.nan_to_num(queued_s + queue_s, nan=np.inf)
        first_s = np.nan_to_num(sent_s + ttft_s, nan=np.inf)
        cut = left_over(records)
        waited_s = np.where(np.isfinite(scheduled_s), scheduled_s, np.where(cut, run.end_s, queued_s))
        last_s = np.where(np.isnan(e2e_s), np.where(cut, run.end_s, first_s), sent_s + e2e_s)
        further = np.maximum(generated - 1.0, 0.0)
        return cls(queued_s, scheduled_s, waited_s, first_s, last_s, inputs.astype(np.float64), further)

    def part(self, rows: NDArray[np.int64]) -> Service:
        """Return the service of some of the requests."""
        return Service(*(getattr(self, field.name)[rows] for field in fields(self)))

    def by(self, moments_s: Floats) -> Floats:
        """Return the service in weighted tokens that had been had by each moment."""
        streams = self.last_s > self.first_s
        at_once = 1.0 + np.where(streams, 0.0, self.further_tokens)
        outputs = _sums(self.first_s, at_once, moments_s)
        first_s, last_s = self.first_s[streams], self.last_s[streams]
        rates = self.further_tokens[streams] / (last_s - first_s)
        for starts_s, sign in ((first_s, 1.0), (last_s, -1.0)):
            slopes, begun = _sums(starts_s, rates, moments_s), _sums(starts_s, rates * starts_s, moments_s)
            outputs += sign * (slopes * moments_s - begun)
        inputs = _sums(self.scheduled_s, self.input_tokens, moments_s)
        had: Floats = INPUT_WEIGHT * inputs + OUTPUT_WEIGHT * outputs
        return had

    def waits(self, moments_s: Floats) -> NDArray[np.bool_]:
        """Say of each moment whether any request is waiting to be scheduled right after it."""
        ends_s = np.sort(self.queued_s), np.sort(self.waited_s)
        came, went = (np.searchsorted(each_s, moments_s, side="right") for each_s in ends_s)
        waiting: NDArray[np.bool_] = came > went
        return waiting

    @property
    def changes_s(self) -> Floats:
        """The moments at which requests come to wait, or cease to."""
        return np.concatenate([self.queued_s, self.waited_s])


def _sums(moments_s: Floats, amounts: Floats, until_s: Floats) -> Floats:
    """Return the sum of the amounts whose moments are not after each of ``until_s``."""
    order = np.argsort(moments_s)
    totals = np.concatenate([[0.0], np.cumsum(amounts[order])])
    sums: Floats = totals[np.searchsorted(moments_s[order], until_s, side="right")]
    return sums
