"""What a reader must know of one step: what it rests on, and whether an engine would ever run it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from servesim.cluster.deployment import Deployment
from servesim.cost.coverage import Spent, Steps, shares
from servesim.cost.step_time import StepTime
from servesim.engine.static import Static
from servesim.results.calibrated import spent_in
from servesim.scenario import Scenario
from servesim.screen.basis import basis, largest
from servesim.screen.step import Step


def step_notes(scenario: Scenario, pool: Deployment, step: Step) -> Iterator[str]:
    """Yield what the time of a step on a replica of a pool rests on, and what keeps it from being run."""
    yield from basis(scenario.as_dict())
    yield from scenario.notes
    yield from _coverage(pool.step_time, step)
    yield from _beyond_the_scheduler(scenario, step)
    yield from _beyond_the_memory(pool, step)


def _coverage(step_time: StepTime, step: Step) -> Iterator[str]:
    """Yield the shares of the step's time that are calibrated, between, and outside, by operation."""
    spent = shares(spent_in(step_time, _one(step_time, step)))
    operations = {name: each._asdict() for name, each in spent.items()}
    for kind in Spent._fields:
        if share := sum(each[kind] for each in operations.values()):
            told = f"{share:.1%} of the time is {kind}"
            yield ": ".join(filter(None, (told, largest(operations, kind))))


def _one(step_time: StepTime, step: Step) -> Steps:
    """Return a single step as the log of a run tells steps."""
    prefilled = sum(new for new, _ in step.chunks)
    read = step.context + sum(new + cached for new, cached in step.chunks)
    told = (
        step_time.mixed(step.sequences, step.context, step.chunks),
        1,
        step.rows,
        step.sequences,
        prefilled,
        read,
    )
    return Steps(*(np.array([value], dtype=np.float64) for value in told))


def _beyond_the_scheduler(scenario: Scenario, step: Step) -> Iterator[str]:
    """Yield which limits of the scheduler the step is beyond."""
    sequences, tokens = scenario.scheduler.step_limits
    static = isinstance(scenario.scheduler, Static)
    if step.rows > sequences:
        limit = "batch_size" if static else "max_num_seqs"
        yield f"the scheduler never forms this step: {step.rows:,} sequences, {limit} is {sequences:,}"
    speculation = scenario.scheduler.speculation
    drafted = speculation.num_speculative_tokens if speculation else 0
    new = step.tokens + drafted * step.sequences
    if not static and new > tokens:
        limit = f"max_num_batched_tokens is {tokens:,}"
        yield f"the scheduler never forms this step: {new:,} new tokens, {limit}"


def _beyond_the_memory(pool: Deployment, step: Step) -> Iterator[str]:
    """Yield whether the sequences are longer, or their KV is more, than the pool allows."""
    longest = max([new + cached for new, cached in step.chunks], default=0)
    if step.sequences:
        longest = max(longest, -(-step.context // step.sequences))
    if longest > pool.max_model_len:
        yield f"no sequence gets this long: {longest:,} tokens, max_model_len is {pool.max_model_len:,}"
    held = pool.kv_blocks * pool.sheet.block_size
    needed = step.context + sum(new + cached for new, cached in step.chunks)
    if needed > held:
        yield f"the KV does not fit: {needed:,} tokens, a replica holds {held:,}"
