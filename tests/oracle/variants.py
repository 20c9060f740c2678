"""Variants of random cases: the same ones with a client, shared prompts, drafts, another order, and so on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf
from random import Random

from servesim.cost.speculation import Heads, Ngram
from servesim.engine.queue_order.fair import Fair
from servesim.engine.queue_order.keyed import EarliestDeadline, ShortestFirst
from servesim.engine.queue_order.order import QueueOrder
from servesim.engine.queue_order.priority import Priority
from servesim.workload.origin import ANYWHERE
from tests.costs import AffineStepTime
from tests.oracle.cases import (
    DRAWS,
    Case,
    DisaggregatedCase,
    PooledCase,
    draw_continuous,
    draw_disaggregated,
    onto_boundaries,
)
from tests.oracle.client import EARLY_S, Sending
from tests.oracle.origins import draw_origins, of_few_lengths


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


def with_origins(draw: Callable[[Random], Case]) -> Callable[[Random], Case]:
    """Return the drawing of the same cases with prompts that have much in common."""

    def drawn(random: Random) -> Case:
        case = draw(random)
        case.limits["enable_prefix_caching"] = random.random() < 0.95
        if random.random() < 0.6:
            case = replace(case, requests=of_few_lengths(random, case.requests))
        return replace(case, sending=replace(case.sending, origins=draw_origins(random, case.requests)))

    return drawn


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
