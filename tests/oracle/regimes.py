"""Counts what a case has exercised, so that a test can tell that rare regimes are reached."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from math import isnan

from tests.costs import AffineStepTime
from tests.oracle.cases import Case, DisaggregatedCase
from tests.oracle.client import EARLY_S, TIE_S
from tests.oracle.cluster import Run
from tests.oracle.static import Static
from tests.oracle.step import Step


def regimes(case: Case, run: Run) -> Counter[str]:
    """Return how often each regime occurs in a case."""
    counts = _requests(case, run) + _limits(case)
    by_replica = [[step for step in run.steps if step.replica == index] for index in range(len(run.free))]
    for replica, steps in enumerate(by_replica):
        counts["decodes cross a segment break"] += _breaks_crossed(steps, _step_time(case, replica))
        counts["joins between two decode steps"] += _joins(steps, run)
    if isinstance(case, DisaggregatedCase):
        counts += _disaggregation(case, run, by_replica[: case.prefill_replicas])
    elif case.engine is Static:
        counts += _batches(case.limits["batch_size"], run.steps)
    return counts


def _requests(case: Case, run: Run) -> Counter[str]:
    sent = [sent_s for sent_s, _, _ in case.requests]
    ends = [step.start_s + step.duration_s for step in run.steps]
    asked = {number: output_tokens for number, (_, _, output_tokens) in enumerate(case.requests)}
    return Counter(
        {
            "arrivals on a boundary": sum(
                any(abs(end_s - at) <= 2 * EARLY_S for end_s in ends) for at in sent
            ),
            "arrivals at one moment": sum(earlier == later for earlier, later in pairwise(sent)),
            "outputs of one token": sum(job.output_tokens == 1 for job in run.finished),
            "outputs capped": sum(job.output_tokens < asked[job.id] for job in run.finished),
            "prompts dropped": len(run.dropped),
            "preemptions": sum(job.preemptions for job in run.finished),
            "pieces of several tokens": sum(job.generated - len(job.token_times) for job in run.finished),
            "cached tokens": sum(job.cached_tokens for job in run.finished),
            "preempted before token 1": sum(
                job.prefilled_s - job.scheduled_s - job.prefill_s > TIE_S for job in run.finished
            ),
        }
    )


def sharing_regimes(run: Run) -> Counter[str]:
    """Return how many tokens were found that others had computed, and how often in certain ways."""
    calm = [job for job in run.finished if not job.preemptions]
    return Counter(
        {
            "found of others": sum(job.cached_tokens for job in calm),
            "found after a preemption": sum(job.cached_tokens > 0 for job in run.finished if job.preemptions),
            "all but one token found": sum(0 < job.cached_tokens == job.input_tokens - 1 for job in calm),
        }
    )


def swapping_regimes(run: Run) -> Counter[str]:
    """Return how often requests were swapped, and in which ways."""
    out = [blocks for blocks, back in run.swaps if blocks]
    back = [blocks for out, blocks in run.swaps if not out]
    preempted = sum(job.preemptions for job in run.finished)
    return Counter(
        {
            "swapped out": len(out),
            "host full": preempted - len(out),
            "copied back": sum(blocks > 0 for blocks in back),
            "found on the GPU": sum(blocks == 0 for blocks in back),
        }
    )


def _limits(case: Case) -> Counter[str]:
    limits = case.limits
    counts = Counter([f"blocks of {limits['block_size']}", f"{len(case.capacities)} replicas"])
    counts["a budget of one token"] += limits.get("max_num_batched_tokens") == 1
    counts["one sequence"] += limits.get("max_num_seqs") == 1
    counts["no prefix caching"] += not limits.get("enable_prefix_caching", True)
    if speculation := limits.get("speculation"):
        counts[f"{speculation.num_speculative_tokens} tokens drafted"] += 1
    counts["whole prompts only"] += not limits.get("enable_chunked_prefill", True)
    return counts


def _step_time(case: Case, replica: int) -> AffineStepTime:
    if isinstance(case, DisaggregatedCase):
        return case.prefill_step_time if replica < case.prefill_replicas else case.decode_step_time
    return case.step_time


def _decode_pairs(steps: list[Step]) -> list[tuple[Step, Step]]:
    """Return the neighbours of which both compute the same number of decodes, and nothing else."""
    return [
        (step, after)
        for step, after in pairwise(steps)
        if step.prefill_tokens == after.prefill_tokens == 0 and step.sequences == after.sequences
    ]


def _breaks_crossed(steps: list[Step], step_time: AffineStepTime) -> int:
    limits = [limit for limit, _ in step_time.breaks]
    return sum(
        step.context <= limit < after.context for step, after in _decode_pairs(steps) for limit in limits
    )


def _joins(steps: list[Step], run: Run) -> int:
    """Count the steps of decodes alone that a prefill follows though nobody has finished."""
    finishes = {job.finished_s for job in run.finished}
    return sum(
        step.prefill_tokens == 0 < after.prefill_tokens and after.start_s not in finishes
        for step, after in pairwise(steps)
        if after.start_s == step.start_s + step.duration_s
    )


def _batches(batch_size: int, steps: list[Step]) -> Counter[str]:
    starts = [step for step in steps if step.prefill_tokens]
    return Counter(
        {
            "batches started by the timeout": sum(s.sequences < batch_size and not s.waiting for s in starts),
            "batches shrunk to fit": sum(s.sequences < batch_size and s.waiting > 0 for s in starts),
            "padded rows": sum(step.sequences - step.decodes for step in steps if not step.prefill_tokens),
        }
    )


def _disaggregation(case: DisaggregatedCase, run: Run, prefill: list[list[Step]]) -> Counter[str]:
    sent = [sent_s for sent_s, _, _ in case.requests]
    woken = [
        after
        for steps in prefill
        for step, after in pairwise(steps)
        if after.start_s > step.start_s + step.duration_s and after.start_s not in sent
    ]
    return Counter(
        {
            f"token 1 from {case.first_token}": 1,
            "waits for room or a place to decode": sum(
                job.decode_queue_s > 3 * EARLY_S for job in run.finished
            ),
            "prefill waits for a transfer": len(woken),
            "preempted in prefill": sum(step.preempted for steps in prefill for step in steps),
            "ties": int(run.ties > 0),
        }
    )


def hanging_up_regimes(run: Run) -> Counter[str]:
    """Return what requests were doing when their clients hung up."""
    counts: Counter[str] = Counter()
    for job in run.hung_up:
        handed_over = -1 not in (job.prefill_replica, job.replica)
        if isnan(job.scheduled_s):
            counts["waiting"] += 1
        elif handed_over and (job.landed_s is not None or not job.transfer_s):
            counts["between the pools"] += 1
        else:
            counts["decoding" if job.generated else "prefilling"] += 1
    return counts
