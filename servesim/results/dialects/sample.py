"""What every benchmarking tool works from: the completed requests of a run, as their client saw them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from servesim.results.runs import Floats, Integers
from servesim.results.slo import Slo
from servesim.results.stored import Tables
from servesim.results.token_times import TokenTimes


@dataclass(frozen=True)
class Sample:
    """The completed requests of one run in order of sending; times and latencies are in seconds.

    Attributes:
        times: when their tokens were emitted.
        sent_s: when each was sent.
        input_tokens: tokens of its prompt.
        output_tokens: tokens that it got.
        ttft_s: sending to first token.
        tpot_s: mean gap between its tokens, NaN for a single one.
        e2e_s: sending to last token.
        failed: how many requests did not complete: dropped, timed out or left over.
        duration_s: from the first send to the last response, whatever became of either request.
        limits: what a good request must not exceed, by the name of the latency; None: not asked for.
        gpus: GPUs paid for, by the role of their pool.
    """

    times: TokenTimes
    sent_s: Floats
    input_tokens: Integers
    output_tokens: Integers
    ttft_s: Floats
    tpot_s: Floats
    e2e_s: Floats
    failed: int
    duration_s: float
    limits: Mapping[str, float | None]
    gpus: Mapping[str, int]

    @classmethod
    def of(cls, tables: Tables, duration_s: float, slo: Slo, gpus: Mapping[str, int]) -> Sample:
        """Return the sample of a run.

        Raises:
            ConfigError: the tables do not belong together.
        """
        times = TokenTimes.of(tables)

        def column(name: str) -> NDArray[Any]:
            return tables.request_table.column(name)[times.rows]

        return cls(
            times=times,
            sent_s=column("sent_s"),
            input_tokens=column("input_tokens"),
            output_tokens=column("generated_tokens"),
            ttft_s=column("ttft_s"),
            tpot_s=column("tpot_s"),
            e2e_s=column("e2e_s"),
            failed=len(tables.request_table) - len(times.rows),
            duration_s=duration_s,
            limits=slo.limits,
            gpus=gpus,
        )

    @property
    def completed(self) -> int:
        """How many requests completed."""
        return len(self.sent_s)

    @cached_property
    def total_input_tokens(self) -> int:
        """Tokens of their prompts."""
        return int(self.input_tokens.sum())

    @cached_property
    def total_output_tokens(self) -> int:
        """Tokens that they got."""
        return int(self.output_tokens.sum())

    @property
    def several_tokens(self) -> NDArray[np.bool_]:
        """Which requests got more than one token, and so have gaps between tokens."""
        several: NDArray[np.bool_] = self.output_tokens > 1
        return several

    @cached_property
    def served_s(self) -> float:
        """From the first send to the last response of these requests alone; 0 without any."""
        return float((self.sent_s + self.e2e_s).max() - self.sent_s.min()) if self.completed else 0.0

    def good(self, tpot_of_one_token_s: float) -> int | None:
        """Return how many requests are within all limits; None where no limit is given.

        Tools differ in what a request of one token has for a TPOT; NaN is above every limit.
        """
        if all(limit is None for limit in self.limits.values()):
            return None
        latencies = {
            "ttft_s": self.ttft_s,
            "tpot_s": np.where(self.several_tokens, self.tpot_s, tpot_of_one_token_s),
            "e2e_s": self.e2e_s,
        }
        within = np.ones(self.completed, dtype=np.bool_)
        for name, limit in self.limits.items():
            if limit is not None:
                within &= latencies[name] <= limit
        return int(within.sum())
