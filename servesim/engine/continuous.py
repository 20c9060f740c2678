"""Continuous batching: what may be configured of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from servesim.check import Problem, quantity
from servesim.engine.queue_order.order import Fcfs, QueueOrder
from servesim.engine.queue_order.priority import Priority
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
    """

    queue_order: QueueOrder = quantity(default=Fcfs())
    prefill_policy: PrefillPolicy = quantity(default="stall_free")
    max_num_seqs: int = quantity("sequences", at_least=1, at_most=MOST_SEQUENCES, default=1024)
    max_num_batched_tokens: int = quantity("tokens per step", at_least=1, at_most=MOST_TOKENS, default=8192)
    block_size: int = quantity("tokens", at_least=1, at_most=MOST_TOKENS, default=16)
    enable_chunked_prefill: bool = quantity(default=True)
    enable_prefix_caching: bool = quantity(default=True)
    gpu_memory_utilization: float = quantity("share of GPU memory", above=0, at_most=1, default=0.9)
    kv_cache_dtype: Literal["auto", "bf16", "fp8"] = quantity(default="auto")
    max_model_len: int | Literal["auto"] = quantity("tokens", at_least=2, at_most=MOST_TOKENS, default="auto")
    num_gpu_blocks_override: int | None = quantity("blocks", at_least=1, at_most=MOST_BLOCKS, default=None)

    concerns: ClassVar[tuple[str, ...]] = ("queue_order", "prefill_policy")

    hints: ClassVar[Mapping[str, str]] = {
        "batch_size": "continuous batching has max_num_seqs instead",
        "batch_timeout_s": "continuous batching never waits for a batch to fill",
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

    def can_schedule(self, prompt_tokens: int) -> bool:
        """Say whether a prompt of so many tokens can be scheduled at all: in chunks, or in one step."""
        return self.enable_chunked_prefill or prompt_tokens <= self.max_num_batched_tokens
