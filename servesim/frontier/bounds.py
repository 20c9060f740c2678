"""What a request takes with a cluster to itself: the latencies that no run can beat.

They rest on what step times promise (:class:`~servesim.cost.step_time.StepTime`): a step does not get
shorter by tokens, by context, or by sequences of no less than the mean length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from servesim.cluster.deployment import Deployment
from servesim.cluster.disaggregated import Disaggregated
from servesim.cluster.pools import PrefillDecode
from servesim.cost.steady import prefill_chunks
from servesim.cost.step_time import StepTime
from servesim.engine.static import Static
from servesim.results.slo import Slo
from servesim.scenario import Scenario
from servesim.workload.batch import Batch, IntArray

Floats = NDArray[np.float64]

#: Ratio of neighbouring lengths for which a time is computed; a length between them takes the shorter one's.
RATIO = 1.03


class Alone(NamedTuple):
    """The shortest possible latencies of each request (s)."""

    ttft_s: Floats
    tpot_s: Floats
    e2e_s: Floats


def alone(scenario: Scenario, pools: Sequence[Deployment], sent: Batch) -> Alone:
    """Return lower bounds on the latencies of every request.

    TTFT: its own prompt, in chunks as large as the token budget allows; where the first token comes from a
    decode pool also the transfer, over a link of its own, and one step there. TPOT: the shortest step that
    there is, one token behind the shortest context of all; drafts count as right to the last token.
    """
    first, last = pools[0], pools[-1]
    scheduler = scenario.scheduler
    size = first.max_model_len if isinstance(scheduler, Static) else scheduler.max_num_batched_tokens
    step_s = shortest_step_s(last.step_time, int(sent.input_tokens.min()))
    ttft_s = by_length(sent.input_tokens, lambda prompt: prompt_s(first.step_time, prompt, size))
    if hands_over_first(scenario):
        ttft_s = ttft_s + transfer_s(scenario, first, sent.input_tokens) + step_s
    token_s = step_s / most_tokens(last)
    tpot_s = np.where(sent.output_tokens > 1, token_s, 0.0)
    return Alone(ttft_s, tpot_s, ttft_s + (sent.output_tokens - 1) * token_s)


def most_tokens(pool: Deployment) -> int:
    """Return the most tokens that a step of a pool emits for a sequence."""
    return 1 if pool.speculation is None else pool.speculation.queries


def attainable(slo: Slo, latencies: Alone) -> dict[str, float]:
    """Return the largest share of requests that can meet each limit asked for, and all of them (``slo``).

    A steady part leaves out the first requests, half of them at most: the best such part counts.
    """
    limits = {name: limit for name, limit in slo.limits.items() if limit is not None}
    good = {name: getattr(latencies, name) <= limit for name, limit in limits.items()}
    good["slo"] = np.logical_and.reduce(list(good.values()))
    return {name: _best_part(each) for name, each in good.items()}


def _best_part(good: NDArray[np.bool_]) -> float:
    count = len(good)
    shares = np.cumsum(good[::-1])[::-1] / np.arange(count, 0, -1)
    return float(shares[: count // 2 + 1].max())


def prompt_s(step_time: StepTime, prompt: int, size: int) -> float:
    """Return the time of the steps that compute a prompt by itself, ``size`` tokens in each at most."""
    return sum(step_time.mixed(0, 0, [chunk]) for chunk in prefill_chunks(prompt, size))


def shortest_step_s(step_time: StepTime, context: int) -> float:
    """Return the time of the shortest step that emits or computes a token, contexts being no shorter."""
    base_s, slope_s, _ = step_time.decode(1, context)
    return min(base_s + slope_s * context, step_time.mixed(0, 0, [(1, 0)]))


def hands_over_first(scenario: Scenario) -> bool:
    """Say whether a prompt's KV travels before the first token leaves."""
    return isinstance(scenario.scheduler, Disaggregated) and scenario.scheduler.first_token == "decode"


def transfer_s(scenario: Scenario, source: Deployment, prompts: IntArray) -> Floats:
    """Return how long each prompt's KV travels to a pool of equal GPUs when nothing else does (s).

    Whether both pools share a node depends on their replicas; the quicker link counts.
    """
    cluster, gpu = scenario.cluster, scenario.gpu
    if not isinstance(cluster, PrefillDecode):
        raise TypeError("there is nothing between pools where there is one")
    rate = max(cluster.transfer.bandwidth(gpu, near) for near in (False, True))
    latency_s = min(cluster.transfer.latency(gpu, near) for near in (False, True))
    token_s = source.kv_bytes_per_token / (source.tensor_parallel_size * rate)
    seconds: Floats = latency_s + prompts.astype(np.float64) * token_s
    return seconds


def by_length(lengths: IntArray, seconds: Callable[[int], float]) -> Floats:
    """Return ``seconds`` of each length, rounded down to a few lengths that are 3% apart."""
    rungs = np.arange(ceil(log(int(lengths.max()), RATIO)) + 2)
    ladder = np.unique(np.floor(RATIO**rungs).astype(np.int64))
    rung = np.searchsorted(ladder, lengths, side="right") - 1
    used, place = np.unique(rung, return_inverse=True)
    times: Floats = np.array([seconds(int(length)) for length in ladder[used]])[place]
    return times
