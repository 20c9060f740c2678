"""Random cases: a small deployment and the requests it gets, drawn so that rare regimes are common.

A case is drawn from a ``random.Random``: hypothesis hands one in that it can shrink, and a fixed seed gives
the same cases every time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import ceil, inf
from random import Random
from typing import Any, Literal, TypeVar

from tests.costs import AffineStepTime
from tests.oracle.client import EARLY_S, Sending, Sent
from tests.oracle.cluster import Rule, Run, serve, serve_disaggregated
from tests.oracle.continuous import Continuous
from tests.oracle.static import Static


@dataclass(frozen=True)
class PooledCase:
    """Requests for one pool."""

    engine: type[Continuous] | type[Static]
    requests: tuple[Sent, ...]
    step_time: AffineStepTime
    limits: dict[str, Any]
    kv_blocks: int
    max_model_len: int
    replicas: int
    rule: Rule
    sending: Sending = field(default_factory=Sending)

    @property
    def capacities(self) -> list[int]:
        """KV blocks by replica."""
        return [self.kv_blocks] * self.replicas

    def simulate(self, horizon_s: float = inf) -> Run:
        """Run the oracle."""
        return serve(
            self.requests,
            self.engine,
            self.step_time,
            max_model_len=self.max_model_len,
            replicas=self.replicas,
            rule=self.rule,
            sending=self.sending,
            horizon_s=horizon_s,
            kv_blocks=self.kv_blocks,
            **self.limits,
        )


@dataclass(frozen=True)
class DisaggregatedCase:
    """Requests for a prefill pool and a decode pool."""

    requests: tuple[Sent, ...]
    prefill_step_time: AffineStepTime
    decode_step_time: AffineStepTime
    limits: dict[str, Any]
    prefill_blocks: int
    decode_blocks: int
    max_model_len: int
    prefill_replicas: int
    decode_replicas: int
    rule: Rule
    first_token: Literal["prefill", "decode"]
    transfer_s: float
    sending: Sending = field(default_factory=Sending)

    @property
    def capacities(self) -> list[int]:
        """KV blocks by replica."""
        return [self.prefill_blocks] * self.prefill_replicas + [self.decode_blocks] * self.decode_replicas

    def simulate(self, horizon_s: float = inf) -> Run:
        """Run the oracle."""
        return serve_disaggregated(
            self.requests,
            self.prefill_step_time,
            self.decode_step_time,
            max_model_len=self.max_model_len,
            transfer_s=self.transfer_s,
            first_token=self.first_token,
            prefill_blocks=self.prefill_blocks,
            decode_blocks=self.decode_blocks,
            prefill_replicas=self.prefill_replicas,
            decode_replicas=self.decode_replicas,
            rule=self.rule,
            sending=self.sending,
            horizon_s=horizon_s,
            **self.limits,
        )


Case = PooledCase | DisaggregatedCase
AnyCase = TypeVar("AnyCase", PooledCase, DisaggregatedCase)

RULES: tuple[Rule, ...] = ("round_robin", "least_outstanding")


def draw_continuous(random: Random) -> PooledCase:
    """Draw a case of continuous batching."""
    step_time = draw_step_time(random)
    limits = draw_limits(random)
    requests = draw_requests(random, step_time.step_s, limits["max_num_batched_tokens"])
    max_model_len = draw_max_model_len(random, requests)
    if not limits["enable_chunked_prefill"]:
        limits["max_num_batched_tokens"] = max(limits["max_num_batched_tokens"], max_model_len)
    case = PooledCase(
        Continuous,
        requests,
        step_time,
        limits,
        kv_blocks=draw_blocks(random, max_model_len, limits["block_size"]),
        max_model_len=max_model_len,
        replicas=random.choice((1, 1, 2, 3)),
        rule=random.choice(RULES),
    )
    return onto_boundaries(random, case)


def draw_static(random: Random) -> PooledCase:
    """Draw a case of static batching."""
    step_time = draw_step_time(random)
    requests = draw_requests(random, step_time.step_s, token_budget=8192)
    max_model_len = draw_max_model_len(random, requests)
    limits: dict[str, Any] = {
        "block_size": random.choice((1, 16, 64)),
        "batch_size": random.choice((1, 2, 3, 5, 16)),
        "batch_timeout_s": random.choice((0.0, 0.5, 3.0, 40.0)) * step_time.step_s,
    }
    case = PooledCase(
        Static,
        requests,
        step_time,
        limits,
        kv_blocks=draw_blocks(random, max_model_len, limits["block_size"]),
        max_model_len=max_model_len,
        replicas=random.choice((1, 1, 2, 3)),
        rule=random.choice(RULES),
    )
    return onto_boundaries(random, case)


def draw_disaggregated(random: Random) -> DisaggregatedCase:
    """Draw a case of disaggregated serving."""
    step_time = draw_step_time(random)
    limits = draw_limits(random)
    requests = draw_requests(random, step_time.step_s, limits["max_num_batched_tokens"])
    max_model_len = draw_max_model_len(random, requests)
    if not limits["enable_chunked_prefill"]:
        limits["max_num_batched_tokens"] = max(limits["max_num_batched_tokens"], max_model_len)
    case = DisaggregatedCase(
        requests,
        step_time,
        draw_step_time(random),
        limits,
        prefill_blocks=draw_blocks(random, max_model_len, limits["block_size"]),
        decode_blocks=draw_blocks(random, max_model_len, limits["block_size"]),
        max_model_len=max_model_len,
        prefill_replicas=random.choice((1, 1, 2)),
        decode_replicas=random.choice((1, 1, 2)),
        rule=random.choice(RULES),
        first_token=random.choice(("prefill", "decode")),
        transfer_s=random.uniform(0.01, 20.0) * step_time.step_s,
    )
    return onto_boundaries(random, case)


def draw_step_time(random: Random) -> AffineStepTime:
    """Draw a step time; each of its terms may be absent, and its slope in context may break."""
    step_s = random.uniform(0.005, 0.05)
    contexts = sorted(random.sample(range(5, 400), random.choice((0, 0, 1, 3))))
    return AffineStepTime(
        step_s=step_s,
        sequence_s=random.choice((0.0, 0.02 * step_s)),
        context_s=random.choice((0.0, 1e-5, 1e-3)) * step_s,
        prefill_token_s=random.choice((0.0, 0.01 * step_s)),
        cached_token_s=random.choice((0.0, 0.001 * step_s)),
        breaks=tuple((context, random.uniform(0.0, 0.01) * step_s) for context in contexts),
    )


def draw_limits(random: Random) -> dict[str, Any]:
    """Draw the limits of a step of continuous batching: often wide ones, so that only KV blocks are short."""
    wide = random.random() < 0.4
    return {
        "max_num_seqs": 64 if wide else random.choice((1, 2, 3, 8, 64)),
        "max_num_batched_tokens": random.choice((7, 32, 8192) if wide else (1, 2, 7, 32, 200, 8192)),
        "block_size": random.choice((1, 4, 16, 64)),
        "enable_chunked_prefill": random.random() < 0.8,
        "enable_prefix_caching": random.random() < 0.5,
    }


def draw_requests(random: Random, step_s: float, token_budget: int) -> tuple[Sent, ...]:
    """Draw requests: bursts and lulls, short and long prompts, outputs of one token and of many."""
    longest_input = random.choice((3, 20) if token_budget < 4 else (3, 20, 20, 100, 300))
    longest_output = random.choice((1, 5, 30, 100, 100))
    burstiness = random.random()
    gap_s = random.choice((0.5, 3.0, 30.0)) * step_s
    sent_s = random.uniform(0.0, 1.0)
    requests = []
    for _ in range(random.randint(1, 30)):
        if random.random() > burstiness:
            sent_s += random.uniform(0.0, 2.0) * gap_s
        output_tokens = 1 if random.random() < 0.2 else random.randint(1, longest_output)
        requests.append((sent_s, random.randint(1, longest_input), output_tokens))
    return tuple(requests)


def draw_max_model_len(random: Random, requests: tuple[Sent, ...]) -> int:
    """Draw the longest sequence served: mostly what the requests need, sometimes less or more."""
    needed = max(input_tokens + output_tokens for _, input_tokens, output_tokens in requests)
    return max(2, random.choice((needed, needed, needed, needed // 2, needed * 4)))


def draw_blocks(random: Random, max_model_len: int, block_size: int) -> int:
    """Draw a KV cache: at least the longest sequence, and often hardly more."""
    least = ceil(max_model_len / block_size)
    return least + random.choice((0, 0, 0, 1, 2, least // 2, least // 2, least, 50 * least))


OFFSETS_S = (0.0, 0.0, 0.5 * EARLY_S, -0.5 * EARLY_S, 2.0 * EARLY_S, -2.0 * EARLY_S)


def onto_boundaries(random: Random, case: AnyCase) -> AnyCase:
    """Move a few arrivals onto, or just beside, the end of a step that is under way when they come."""
    requests = list(case.requests)
    for index in sorted(random.sample(range(len(requests)), min(len(requests), random.choice((0, 1, 3))))):
        earlier = replace(case, requests=tuple(requests[:index]))
        ends = [step.start_s + step.duration_s for step in earlier.simulate().steps]
        later = [end_s for end_s in ends if end_s >= requests[index][0]]
        if later:
            sent_s = min(later) + random.choice(OFFSETS_S)
            requests[index:] = [
                (max(sent_s, was_s), inputs, outputs) for was_s, inputs, outputs in requests[index:]
            ]
    return replace(case, requests=tuple(requests))


DRAWS: dict[str, Callable[[Random], Case]] = {
    "continuous": draw_continuous,
    "static": draw_static,
    "disaggregated": draw_disaggregated,
}
