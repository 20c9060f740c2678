"""Continuous batching: what may be configured of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from servesim.check import LEAST_FACTOR, MOST_S, Problem, quantity
from servesim.cost.speculation import DraftModel, Heads, Ngram, Speculation
from servesim.engine.offload import MOST_GIB, Offload
from servesim.engine.queue_order.fair import Fair
from servesim.engine.queue_order.order import Fcfs, QueueOrder
from servesim.engine.queue_order.priority import Priority
from servesim.engine.token_draws import TokenDraws
from servesim.streams import Streams
from servesim.words import listed
from servesim.workload.lengths import MOST_TOKENS

#: A thousand times what engines run with. The memory that step times take grows with these numbers.
MOST_SEQUENCES = 1_000_000
MOST_BLOCKS = 1_000_000_000

#: What shares a step with what: prompts fill up the steps of decodes, or have steps of their own, which come
#: before those of decodes or after them.
PrefillPolicy = Literal["stall_free", "prefill_first", "decode_first"]


@dataclass(frozen=True)
class Continuous:
    """Iteration-level batching as in vLLM's V1 scheduler, whose flag names it keeps.

    Running requests are scheduled before waiting ones within the token budget; a prompt may be split into
    chunks that share steps with the decodes; when KV blocks run out, the last running request is preempted
    and later recomputed (Yu et al., Orca, OSDI 2022; Kwon et al., vLLM, SOSP 2023; Agrawal et al.,
    Sarathi-Serve, OSDI 2024). That is ``prefill_policy=stall_free``; with others, prompts and decodes have
    steps of their own. With ``enable_prefix_caching`` a request computes only what it does not find:
    of its own KV after a preemption, and of what others have computed that begins as its prompt does.

    With a ``step_target_s`` the token budget of a step is, up to ``max_num_batched_tokens``, the largest with
    which it takes at most so long beside its decodes, but for copies of swapped KV
    (:mod:`servesim.engine.step_target`).

    With ``speculation`` every decode is a verification of drafted tokens, each of which counts in the token
    budget. Other than in vLLM, which then drafts less, the budget must have room for all sequences.

    With ``preemption_mode=swap`` the KV of a preempted request goes to the host, ``swap_space`` GiB of which
    each GPU has, and comes back with it (vLLM V0's ``--preemption-mode`` and ``--swap-space``; V1 always
    recomputes). ``pcie_efficiency`` is the share of PCIe's line rate that such copies get.
    """

    queue_order: QueueOrder = quantity(default=Fcfs())
    prefill_policy: PrefillPolicy = quantity(default="stall_free")
    step_target_s: float | None = quantity("s per step", above=0, at_most=MOST_S, default=None)
    max_num_seqs: int = quantity("sequences", at_least=1, at_most=MOST_SEQUENCES, default=1024)
    max_num_batched_tokens: int = quantity("tokens per step", at_least=1, at_most=MOST_TOKENS, default=8192)
    block_size: int = quantity("tokens", at_least=1, at_most=MOST_TOKENS, default=16)
    enable_chunked_prefill: bool = quantity(default=True)
    enable_prefix_caching: bool = quantity(default=True)
    gpu_memory_utilization: float = quantity("share of GPU memory", above=0, at_most=1, default=0.9)
    kv_cache_dtype: Literal["auto", "bf16", "fp8"] = quantity(default="auto")
    max_model_len: int | Literal["auto"] = quantity("tokens", at_least=2, at_most=MOST_TOKENS, default="auto")
    num_gpu_blocks_override: int | None = quantity("blocks", at_least=1, at_most=MOST_BLOCKS, default=None)
    speculation: Ngram | DraftModel | Heads | None = quantity(default=None)
    preemption_mode: Literal["recompute", "swap"] = quantity(default="recompute")
    swap_space: float = quantity("GiB of host memory per GPU", at_least=0, at_most=MOST_GIB, default=4.0)
    pcie_efficiency: float = quantity("share of line rate", at_least=LEAST_FACTOR, at_most=1, default=0.8)
    offload: Offload | None = quantity(default=None)

    concerns: ClassVar[tuple[str, ...]] = (
        "queue_order",
        "prefill_policy",
        "step_target_s",
        "enable_chunked_prefill",
        "max_num_seqs",
        "max_num_batched_tokens",
        "speculation",
        "offload",
        "enable_prefix_caching",
    )

    hints: ClassVar[Mapping[str, str]] = {
        "batch_size": "continuous batching has max_num_seqs instead",
        "batch_timeout_s": "continuous batching never waits for a batch to fill",
        "num_speculative_tokens": "choose what drafts first: scheduler/speculation=ngram, say",
    }

    @property
    def throws_out(self) -> bool:
        """Whether a waiting request may throw running ones out."""
        return isinstance(self.queue_order, Priority) and self.queue_order.preempt

    def problems(self) -> Iterator[Problem]:
        """Yield policies that do not go together."""
        if self.throws_out and self.prefill_policy != "stall_free":
            message = "must be false unless prefill_policy=stall_free"
            yield Problem("queue_order.preempt", True, message)
        yield from self._misfits_of_target()
        if self.speculation is not None:
            yield from self._draft_problems(self.speculation)
        if self.offload is not None:
            yield from self._misfits_of_tiers()

    def _misfits_of_target(self) -> Iterator[Problem]:
        """Yield what steps of a given length do not go together with."""
        needed = {
            "enable_chunked_prefill=true": self.enable_chunked_prefill,
            "prefill_policy=stall_free": self.prefill_policy == "stall_free",
            "queue_order.preempt=false": not self.throws_out,
            "scheduler/speculation=none": self.speculation is None,
            "scheduler/offload=none": self.offload is None,
        }
        lacking = listed((setting for setting, there in needed.items() if not there), "and")
        if self.step_target_s is not None and not all(needed.values()):
            yield Problem("step_target_s", self.step_target_s, f"must be null unless {lacking}")

    def _misfits_of_tiers(self) -> Iterator[Problem]:
        """Yield what tiers behind the GPUs do not go together with."""
        if not self.enable_prefix_caching:
            message = "needs enable_prefix_caching: tiers keep what the prefix cache loses"
            yield Problem("offload", None, message)
        if self.throws_out:
            yield Problem("queue_order.preempt", True, "must be false unless scheduler/offload=none")
        if self.prefill_policy != "stall_free":
            message = "must be stall_free unless scheduler/offload=none"
            yield Problem("prefill_policy", self.prefill_policy, message)

    def _draft_problems(self, speculation: Speculation) -> Iterator[Problem]:
        """Yield policies that drafts do not go with, and that a step with those of all is too large."""
        if self.prefill_policy != "stall_free":
            message = (
                f"must be stall_free: drafts beside {self.prefill_policy} are not modelled in this version"
            )
            yield Problem("prefill_policy", self.prefill_policy, message)
        if isinstance(self.queue_order, Fair):
            message = "counts a token per step: drafts beside it are not modelled in this version"
            yield Problem("queue_order", "fair", message)
        needed = self.max_num_seqs * speculation.queries
        if self.max_num_batched_tokens < needed:
            most = self.max_num_batched_tokens // speculation.queries
            message = (
                f"must be at least {needed}, for max_num_seqs={self.max_num_seqs} sequences of 1 + "
                f"{speculation.num_speculative_tokens} drafted tokens (tokens per step)"
            )
            hint = f"; or set scheduler.max_num_seqs={most}" if most else ""
            yield Problem("max_num_batched_tokens", self.max_num_batched_tokens, message + hint)

    @property
    def step_limits(self) -> tuple[int, int]:
        """Sequences and tokens that a step may have."""
        return self.max_num_seqs, self.max_num_batched_tokens

    @property
    def queries(self) -> int:
        """Tokens that a decoding sequence has in a step."""
        return 1 if self.speculation is None else self.speculation.queries

    def draws(self, streams: Streams) -> TokenDraws | None:
        """Return how many tokens the steps of a run's requests emit; None: one each."""
        if self.speculation is None:
            return None
        return TokenDraws(self.speculation.rates, streams.stream("speculation"))

    def can_schedule(self, prompt_tokens: int) -> bool:
        """Say whether a prompt of so many tokens can be scheduled at all: in chunks, or in one step."""
        return self.enable_chunked_prefill or prompt_tokens <= self.max_num_batched_tokens
