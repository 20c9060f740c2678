"""How much a replica that is never idle can do at the most, and so how few replicas may keep up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from servesim.cluster.deployment import Deployment
from servesim.engine.static import Static
from servesim.frontier.bounds import by_length, hands_over_first, most_tokens
from servesim.scenario import Scenario
from servesim.workload.batch import Batch, IntArray

#: Share of the work that may be left when the sending ends, in a run that seems to keep up.
UNFINISHED = 0.05


def busy_s(scenario: Scenario, pools: Sequence[Deployment], sent: Batch) -> tuple[float, ...]:
    """Return the replica-seconds that these requests keep each pool busy for, at the least.

    In a pool that does everything, decodes ride along with prompts: decode steps alone are one bound, full
    steps of prompts with what decodes add to them another. Static batches do one after the other.
    """
    prompts = sent.input_tokens
    further = np.minimum(sent.output_tokens, pools[0].max_model_len - prompts) - 1
    if len(pools) > 1:
        prefill, decode = pools
        decoding = _decoding(scenario, decode, prompts, further + hands_over_first(scenario))
        return _prefill_s(scenario, prefill, prompts), decoding.alone_s(decode)
    (pool,) = pools
    decoding, prefill_s = _decoding(scenario, pool, prompts, further), _prefill_s(scenario, pool, prompts)
    if isinstance(scenario.scheduler, Static):
        return (prefill_s + decoding.alone_s(pool),)
    budget = scenario.scheduler.max_num_batched_tokens
    return (max(prefill_s + decoding.beside_prompts_s(pool, budget), decoding.alone_s(pool)),)


def least_replicas(busy_s: Sequence[float], span_s: float) -> tuple[int, ...]:
    """Return the replicas of each pool below which requests sent over ``span_s`` seconds pile up."""
    return tuple(max(ceil((1 - UNFINISHED) * seconds / span_s), 1) for seconds in busy_s)


@dataclass(frozen=True)
class Decoding:
    """Decode steps that hold as many sequences as there is room for.

    Steps are no fewer than tokens / the most sequences of a batch, nor than the KV that all tokens read / the
    KV that a replica holds. Fewer and larger steps take less time, equal steps less than unequal ones.
    ``sequences`` and ``context`` (tokens) are of one step, rounded down.
    """

    steps: float
    sequences: int
    context: int

    def alone_s(self, pool: Deployment) -> float:
        """Return the time of all steps without prompts beside them."""
        return self.steps * pool.step_time.mixed(self.sequences, self.context, [])

    def beside_prompts_s(self, pool: Deployment, budget: int) -> float:
        """Return what the decodes add to steps that are full of prompts."""
        full = [(budget, 0)]
        both_s = pool.step_time.mixed(self.sequences, self.context, full)
        return self.steps * max(both_s - pool.step_time.mixed(0, 0, full), 0.0)


def _decoding(scenario: Scenario, pool: Deployment, prompts: IntArray, tokens: IntArray) -> Decoding:
    """Return the fullest steps in which each prompt gets its tokens, as many at a time as may be."""
    emitted = float(tokens.sum()) / most_tokens(pool)
    if not emitted:
        return Decoding(0.0, 1, 1)
    read = float((tokens * prompts + tokens * (tokens - 1) / 2).sum()) / most_tokens(pool)
    held = pool.kv_blocks * scenario.scheduler.block_size
    steps = max(emitted / _rows(scenario), read / held)
    sequences = max(int(emitted / steps), 1)
    return Decoding(steps, sequences, max(int(read / emitted * sequences), sequences))


def _prefill_s(scenario: Scenario, pool: Deployment, prompts: IntArray) -> float:
    """Return the time of prompts in steps of nothing else: each its share of a step of its equals.

    The more there are in a step the cheaper each, but for kernels that are a little slower per token when
    there are many; so the cheapest of 1, 2, 4, ... and as many as the budget takes counts.
    """

    def share_s(prompt: int) -> float:
        most = _rows(scenario)
        if not isinstance(scenario.scheduler, Static):
            most = min(ceil(scenario.scheduler.max_num_batched_tokens / prompt), most)
        numbers = {most, *(2**power for power in range(most.bit_length()))}
        shares: list[float] = [
            pool.step_time.mixed(0, 0, [(prompt, 0)] * number) / number for number in numbers
        ]
        return min(shares)

    return float(by_length(prompts, share_s).sum())


def _rows(scenario: Scenario) -> int:
    """Return the most sequences of a batch."""
    scheduler = scenario.scheduler
    return scheduler.batch_size if isinstance(scheduler, Static) else scheduler.max_num_seqs
