"""How much of a run's simulated time is calibrated, interpolated and extrapolated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from servesim.cluster.deployment import Deployment
from servesim.cost.coverage import Spent, Steps, shares
from servesim.cost.fitted import FittedStepTime
from servesim.cost.speculative import SpeculativeStepTime
from servesim.cost.step_time import StepTime
from servesim.results.columns import pools_of
from servesim.results.records import Records

_COLUMNS = (
    "replica",
    "first_step_s",
    "increment_s",
    "steps",
    "sequences",
    "decodes",
    "prefill_tokens",
    "context_tokens",
)


def calibrated(records: Records, deployments: Sequence[Deployment], name: str) -> dict[str, Any]:
    """Return the shares of the time that all replicas spent in steps, and of each operation in it.

    Null where step times are not fitted (the datasheet's roofline).
    """
    by_operation = shares(_spent(records, deployments))
    total = {kind: sum(getattr(each, kind) for each in by_operation.values()) for kind in Spent._fields}
    return {
        "name": name,
        **(total if by_operation else dict.fromkeys(Spent._fields)),
        "operations": {operation: each._asdict() for operation, each in by_operation.items()} or None,
    }


def _spent(records: Records, deployments: Sequence[Deployment]) -> dict[str, Spent]:
    """Return the seconds of every operation, all pools together."""
    spent: dict[str, Spent] = {}
    if not any(_is_fitted(pool.step_time) for pool in deployments):
        return spent
    for replica, first_s, increment_s, steps, *amounts in records.step_table.groups(*_COLUMNS):
        seconds = steps * first_s + increment_s * (steps * (steps - 1) / 2)
        for pool, rows in pools_of(replica, deployments):
            run = Steps(*(column[rows] for column in (seconds, steps, *amounts)))
            for operation, each in spent_in(pool.step_time, run).items():
                spent[operation] = each.plus(spent.get(operation))
    return spent


def spent_in(step_time: StepTime, steps: Steps) -> dict[str, Spent]:
    """Return what steps spent in each operation; nothing where their times are not fitted."""
    if isinstance(step_time, SpeculativeStepTime):
        return step_time.spent(steps)
    return step_time.coverage.spent(steps) if isinstance(step_time, FittedStepTime) else {}


def _is_fitted(step_time: StepTime) -> bool:
    target = step_time.target if isinstance(step_time, SpeculativeStepTime) else step_time
    return isinstance(target, FittedStepTime)
