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

from servesim.cost.speculation import Heads, Ngram
from servesim.engine.queue_order.fair import Fair
from servesim.engine.queue_order.keyed import EarliestDeadline, ShortestFirst
from servesim.engine.queue_order.order import QueueOrder
from servesim.engine.queue_order.priority import Priority
from servesim.workload.origin import ANYWHERE, Origin
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


def draw_sending(random: Random, step_s: float) -> Sending:
    """Draw a client: a semaphore or users, and times that often are as long as steps."""
    api_time_s = random.choice((0.0, 0.0, 0.5 * EARLY_S, 0.3, 1.0, 2.7)) * step_s
    if random.random() < 0.5:
        return Sending(random.choice((1, 2, 3, 8, 100, None)), api_time_s)
    return Sending(
        api_time_s=api_time_s,
        users=random.choice((1, 2, 3, 8, 40)),
        ramp_up_s=random.choice((0.0, 1.0, 20.0)) * step_s * random.choice((1.0, random.random())),
        think_time_s=random.choice((0.0, 0.0, 1.0, 5.0)) * step_s * random.choice((1.0, random.random())),
    )


def with_client(draw: Callable[[Random], Case]) -> Callable[[Random], Case]:
    """Return the drawing of the same cases with a client that waits for answers."""

    def drawn(random: Random) -> Case:
        case = draw(random)
        step_time = case.prefill_step_time if isinstance(case, DisaggregatedCase) else case.step_time
        return replace(case, sending=draw_sending(random, step_time.step_s))

    return drawn


def hanging_up(draw: Callable[[Random], Case]) -> Callable[[Random], Case]:
    """Return the drawing of the same cases with clients that hang up on a good part of their requests."""

    def drawn(random: Random) -> Case:
        case = draw(random)
        sending = case.sending
        if random.random() < 0.5:
            sending = replace(draw_sending(random, 0.05), origins=sending.origins)
        case = replace(case, sending=sending)
        lasted_s = sorted(job.finished_s - job.sent_s for job in case.simulate().finished) or [1.0]
        limits_s = [random.choice(lasted_s) * random.choice((0.1, 0.4, 0.7, 0.95)) for _ in range(2)]
        which = random.choice((1, 2, 3))
        timeout_s, ttft_timeout_s = (
            max(limit_s, sending.api_time_s + 1e-3) if which & bit else inf
            for limit_s, bit in zip(limits_s, (1, 2), strict=True)
        )
        sending = replace(sending, timeout_s=timeout_s, ttft_timeout_s=ttft_timeout_s)
        return replace(case, sending=sending)

    return drawn


def draw_origins(random: Random, requests: tuple[Sent, ...]) -> tuple[Origin, ...]:
    """Draw what prompts have in common: system prompts and conversations, or blocks of a trace."""
    origins = _conversations if random.random() < 0.6 else _branches
    return origins(random, [input_tokens for _, input_tokens, _ in requests])


def _conversations(random: Random, inputs: list[int]) -> tuple[Origin, ...]:
    """Draw requests of a few conversations, all of which begin with one of two system prompts."""
    longest = max(inputs)
    systems = [random.choice((0, longest // 3, longest // 2)) for _ in range(2)]
    origins = []
    for input_tokens in inputs:
        system, session = random.randrange(2), random.randrange(random.choice((1, 3, 100)))
        end = min(systems[system], input_tokens)
        stream = random.choice((True, True, False)) and end == systems[system]
        prefix = ((system, end),) if end else ()
        origins.append(Origin(session, prefix=prefix, stream=2 + 2 * session + system if stream else None))
    return tuple(origins)


def _branches(random: Random, inputs: list[int]) -> tuple[Origin, ...]:
    """Draw prompts of blocks of a few tokens, each block one of two that may follow those before it."""
    block_tokens = random.choice((1, 4, 24, 64))
    origins = []
    for input_tokens in inputs:
        key, prefix = 1, []
        for end in range(block_tokens, input_tokens + block_tokens, block_tokens):
            key = 2 * key + (random.random() < 0.2)
            last = end > input_tokens
            prefix.append((-key if last else key, min(end, input_tokens)))
        origins.append(Origin(prefix=tuple(prefix)))
    return tuple(origins)


def with_origins(draw: Callable[[Random], Case]) -> Callable[[Random], Case]:
    """Return the drawing of the same cases with prompts that have much in common."""

    def drawn(random: Random) -> Case:
        case = draw(random)
        case.limits["enable_prefix_caching"] = random.random() < 0.95
        if random.random() < 0.6:
            case = replace(case, requests=_shifted(random, case.requests))
        return replace(case, sending=replace(case.sending, origins=draw_origins(random, case.requests)))

    return drawn


def _shifted(random: Random, requests: tuple[Sent, ...]) -> tuple[Sent, ...]:
    """Return the requests with prompts of few lengths, so that one often is the beginning of another."""
    lengths = [input_tokens for _, input_tokens, _ in requests]
    few = random.sample(lengths, min(2, len(lengths)))
    return tuple((sent_s, random.choice(few), outputs) for sent_s, _, outputs in requests)


def with_speculation(draw: Callable[[Random], Case]) -> Callable[[Random], Case]:
    """Return the drawing of the same cases with drafts: short and long, mostly right and mostly wrong."""

    def drawn(random: Random) -> Case:
        case = draw(random)
        drafted = random.choice((1, 1, 2, 4, 9))
        kind = random.choice((Ngram, Heads))
        rate = random.choice((0.0, 0.3, 0.7, 0.7, 1.0))
        case.limits["speculation"] = kind(num_speculative_tokens=drafted, acceptance=rate)
        case.limits["max_num_seqs"] = min(case.limits["max_num_seqs"], 16)
        needed = case.limits["max_num_seqs"] * (1 + drafted)
        case.limits["max_num_batched_tokens"] = max(case.limits["max_num_batched_tokens"], needed)
        return onto_boundaries(random, case)

    return drawn


SHARING = {kind: with_origins(DRAWS[kind]) for kind in ("continuous", "disaggregated")}

WITH_CLIENT = {kind: with_client(draw) for kind, draw in DRAWS.items()}

HANGING_UP = {kind: hanging_up(SHARING.get(kind, draw)) for kind, draw in DRAWS.items()}

ORDERS: tuple[QueueOrder, ...] = (
    ShortestFirst(),
    ShortestFirst(by="total"),
    ShortestFirst(by="output"),
    Priority(),
    EarliestDeadline(),
    Fair(),
    Fair(input_weight=0.25, output_weight=3.0),
)


def in_order(
    draw: Callable[[Random], Case], orders: tuple[QueueOrder, ...] = ORDERS
) -> Callable[[Random], Case]:
    """Return the drawing of the same cases with another queue order, and requests that differ in rank."""

    def drawn(random: Random) -> Case:
        case = draw(random)
        tenants, classes = random.choice((1, 2, 2, 3)), random.choice((1, 2, 3))
        slacks_s = random.sample((0.0, 0.1, 1.0, 10.0, inf), 2)
        weights = random.choice(((1.0, 1.0, 1.0), (4.0, 0.5, 1.0)))
        drawn_tenants = [random.randrange(tenants) for _ in case.requests]
        origins = tuple(
            origin._replace(
                tenant=tenant,
                weight=weights[tenant],
                priority=random.randrange(classes),
                slack_s=random.choice(slacks_s),
            )
            for tenant, origin in zip(
                drawn_tenants, case.sending.origins or [ANYWHERE] * len(case.requests), strict=True
            )
        )
        return replace(
            case,
            limits={**case.limits, "queue_order": random.choice(orders)},
            sending=replace(case.sending, origins=origins),
        )

    return drawn


#: Static batching takes requests as they come.
IN_ORDER = {
    "thrown out": in_order(WITH_CLIENT["continuous"], (Priority(preempt=True),)),
    "thrown out, sharing": in_order(SHARING["continuous"], (Priority(preempt=True),)),
    "continuous": in_order(WITH_CLIENT["continuous"]),
    "disaggregated": in_order(WITH_CLIENT["disaggregated"]),
    "sharing": in_order(SHARING["continuous"]),
}


def in_phases(draw: Callable[[Random], Case]) -> Callable[[Random], Case]:
    """Return the drawing of the same cases with steps of prompts alone."""

    def drawn(random: Random) -> Case:
        case = draw(random)
        policy = random.choice(("prefill_first", "prefill_first", "decode_first"))
        return replace(case, limits={**case.limits, "prefill_policy": policy})

    return drawn


IN_PHASES = {
    "plain": in_phases(WITH_CLIENT["continuous"]),
    "sharing": in_phases(SHARING["continuous"]),
    "in order": in_phases(IN_ORDER["continuous"]),
}


def with_target(draw: Callable[[Random], PooledCase]) -> Callable[[Random], PooledCase]:
    """Return the drawing of the same cases with a target for steps: that of some step that may come.

    In half of them every token costs much, so that prompts wait for others to be found or to be gone.
    """

    def drawn(random: Random) -> PooledCase:
        case = draw(random)
        step_s, tokens = case.step_time.step_s, random.choice(((1, 0), (2, 0), (9, 0), (40, 0), (5, 30)))
        if random.random() < 0.5:
            dear_s = [step_s * random.choice((0.0, 0.02, 0.2)) for _ in range(3)]
            case = replace(case, step_time=AffineStepTime(step_s, 0.0, *dear_s))
        decodes, context = random.choice(((0, 0), (1, 20), (3, 90), (8, 300)))
        target_s = case.step_time.mixed(decodes, context, [tokens]) * random.choice((0.5, 1.0, 1.0, 1.02))
        limits = {**case.limits, "enable_chunked_prefill": True, "step_target_s": target_s}
        return replace(case, limits=limits)

    return drawn


#: Steps that may last so long, beside all that goes with them.
TARGETED: dict[str, Callable[[Random], PooledCase]] = {
    "plain": with_target(draw_continuous),
    "client": with_target(WITH_CLIENT["continuous"]),
    "sharing": with_target(SHARING["continuous"]),
    "in order": with_target(IN_ORDER["sharing"]),
    "hanging up": with_target(hanging_up(IN_ORDER["sharing"])),
}

SPECULATING = {
    "continuous": with_speculation(draw_continuous),
    "continuous, shared prompts": with_speculation(SHARING["continuous"]),
    "disaggregated": with_speculation(draw_disaggregated),
    "in order": with_speculation(in_order(draw_continuous, ORDERS[:5])),
    "thrown out": with_speculation(IN_ORDER["thrown out"]),
}

#: Queue orders and prefill policies beside clients that hang up.
HANGING_UP_IN_ORDER = {
    "drafts": hanging_up(SPECULATING["continuous, shared prompts"]),
    "drafts, two pools": hanging_up(SPECULATING["disaggregated"]),
    "in order": hanging_up(IN_ORDER["sharing"]),
    "thrown out": hanging_up(IN_ORDER["thrown out, sharing"]),
    "in phases": hanging_up(IN_PHASES["in order"]),
}


def with_swapping(draw: Callable[[Random], Case]) -> Callable[[Random], Case]:
    """Return the drawing of the same cases with host memory, ample, tight or none, for who is preempted."""

    def drawn(random: Random) -> Case:
        case = draw(random)
        fewest = min(case.capacities)
        step_s = random.choice((0.0, 1e-3, 0.1))
        case.limits["swap_blocks"] = random.choice((0, 1, fewest // 4, fewest // 2, fewest, 100 * fewest))
        case.limits["swap_block_s"] = step_s * random.uniform(0.1, 1.0)
        return case

    return drawn


SWAPPING = {
    "continuous": with_swapping(draw_continuous),
    "disaggregated": with_swapping(draw_disaggregated),
    "sharing": with_swapping(SHARING["continuous"]),
    "in order": with_swapping(IN_ORDER["continuous"]),
    "thrown out": with_swapping(IN_ORDER["thrown out, sharing"]),
    "in phases": with_swapping(IN_PHASES["sharing"]),
    "drafts": with_swapping(SPECULATING["continuous, shared prompts"]),
    "drafts, two pools": with_swapping(SPECULATING["disaggregated"]),
    "hanging up": with_swapping(HANGING_UP["continuous"]),
    "hanging up, two pools": with_swapping(HANGING_UP["disaggregated"]),
}
