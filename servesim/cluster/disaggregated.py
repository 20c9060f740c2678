"""The disaggregated scheduler's configuration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from servesim.check import Problem, quantity
from servesim.engine.continuous import Continuous
from servesim.engine.disaggregated import FirstToken


@dataclass(frozen=True)
class Disaggregated(Continuous):
    """Prefill on one pool, decode on another; both batch continuously, under the same limits.

    ``first_token=decode``: the decode replica recomputes the last prompt position in its first step and
    emits token 1 there, as vLLM's KV connectors do. ``first_token=prefill``: token 1 leaves at the end of
    prefill.
    """

    first_token: FirstToken = quantity(default="decode")

    def problems(self) -> Iterator[Problem]:
        """Yield what is for a replica that does both: policies, and KV tiers."""
        if self.throws_out:
            message = "must be false: nobody is thrown out on the way from one pool to the other"
            yield Problem("queue_order.preempt", True, message)
        if self.prefill_policy != "stall_free":
            message = "must be stall_free: prompts are computed on a pool of their own"
            yield Problem("prefill_policy", self.prefill_policy, message)
        if self.step_target_s is not None:
            message = "must be null: prompts and decodes do not share steps"
            yield Problem("step_target_s", self.step_target_s, message)
        if self.offload is not None:
            message = "is not modelled for prefill and decode pools: choose scheduler/offload=none"
            yield Problem("offload", None, message)
