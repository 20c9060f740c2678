"""What keeps a cluster from carrying more: which latency gives way first, and what it is spent on."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from servesim.cluster.deployment import Deployment
from servesim.engine.static import Static
from servesim.results.result import Result
from servesim.scenario import Scenario

if TYPE_CHECKING:
    import pandas as pd

#: What each bound of an operation is called.
CAUSES = {
    "compute": "compute",
    "memory": "bandwidth",
    "link": "links",
    "latency": "launches",
    "host": "host",
}
#: Share of its busy time for which a full cache must have kept requests waiting to be what limits a pool.
OFTEN = 0.1
#: Share of KV blocks from which on a cache that admits nobody counts as full.
FULL = 0.9
#: Steps of which the operations are looked at, one from each equal part of the busy time.
SAMPLE = 64


class Limit(NamedTuple):
    """What gives way first, and why.

    ``symptom`` is the latency that the most requests miss (``ttft``, ``tpot``, ``e2e``), or ``queue`` where
    requests pile up though each answer is in time. ``cause`` is KV memory, transfer, or one of
    :data:`CAUSES`; ``role`` the pool that it is found in, None for a transfer.
    """

    symptom: str
    cause: str
    role: str | None


def limit(scenario: Scenario, result: Result) -> Limit:
    """Return what limits a run, best one under a little more traffic than it can carry.

    The pool is the one in which the requests that miss lose the most time. It is limited by KV memory when
    for more than a tenth of its busy time requests wait and blocks are lacking; otherwise by what most of
    its step time is spent on, operation by operation. A prefill pool may lack blocks because a decode pool
    without room lets it wait: then the latter is named.
    """
    requests = result.requests
    requests = requests[requests["sent_s"] >= (result.summary["warmup_cut_s"] or 0.0)]
    symptom, missing = _symptom(scenario, requests)
    pools: dict[str, Deployment] = {pool.role: pool for pool in scenario.deployments()}
    role = _where(missing, symptom) if len(pools) > 1 else "serve"
    if role == "transfer":
        return Limit(symptom, "transfer", None)
    steps = {name: _steps_of(result, pool) for name, pool in pools.items()}
    full = [name for name, pool in pools.items() if _waits_for_kv(scenario, pool, steps[name])]
    if role in full:
        return Limit(symptom, "KV memory", full[-1])
    return Limit(symptom, _most_time(pools[role], steps[role]), role)


def _symptom(scenario: Scenario, requests: pd.DataFrame) -> tuple[str, pd.DataFrame]:
    """Return the limit that is missed most, and the requests that miss it (all, if it is the queue)."""
    asked = {name: value for name, value in scenario.slo.limits.items() if value is not None}
    missing = {name: requests[requests[name] > value] for name, value in asked.items()}
    worst = max(missing, key=lambda name: len(missing[name]))
    if missing[worst].empty:
        return "queue", requests
    return worst.removesuffix("_s"), missing[worst]


def _where(requests: pd.DataFrame, symptom: str) -> str:
    """Return the stage of a hand-over in which these requests lose the most time."""
    lost = requests[["queue_s", "prefill_s", "transfer_s", "decode_queue_s", "decode_s"]].mean()
    stages = {
        "prefill": lost["queue_s"] + lost["prefill_s"],
        "transfer": lost["transfer_s"],
        "decode": lost["decode_queue_s"] + (0.0 if symptom == "ttft" else lost["decode_s"]),
    }
    return "decode" if symptom == "tpot" else max(stages, key=stages.__getitem__)


def _steps_of(result: Result, pool: Deployment) -> pd.DataFrame:
    """Return the leaps of a pool, with the ``seconds`` that each lasts."""
    steps = result.steps
    own = steps["replica"].between(pool.first_replica, pool.first_replica + pool.replicas - 1)
    steps = steps[own]
    count = steps["steps"]
    seconds = count * steps["first_step_s"] + steps["increment_s"] * (count * (count - 1) / 2)
    return steps.assign(seconds=seconds)


def _waits_for_kv(scenario: Scenario, pool: Deployment, steps: pd.DataFrame) -> bool:
    """Say whether requests often wait, or are thrown out, because blocks are lacking.

    A static batch takes its members only when it starts, in the step that prefills them.
    """
    scheduler = scenario.scheduler
    if isinstance(scheduler, Static):
        steps = steps[steps["prefill_tokens"] > 0]
        room = steps["sequences"] < scheduler.batch_size
    else:
        room = (steps["sequences"] < scheduler.max_num_seqs) & (steps["kv_blocks"] > FULL * pool.kv_blocks)
    lacking = ((steps["waiting"] > 0) & room) | (steps["preempted"] > 0)
    return bool(steps["seconds"][lacking].sum() > OFTEN * steps["seconds"].sum())


def _most_time(pool: Deployment, steps: pd.DataFrame) -> str:
    """Return what most of the time of a pool's steps is spent on; prompts of a step count as equal."""
    spent: dict[str, float] = {}
    columns = ("prefill_tokens", "sequences", "decodes", "context_tokens")
    sample = steps.iloc[_sample(steps["seconds"].to_numpy(dtype=float))]
    for new, rows, emitting, read in sample[list(columns)].to_numpy(dtype=int).tolist():
        decodes = emitting if new else rows
        prompts = rows - decodes
        chunks = [(max(new // prompts, 1), 0)] * prompts if prompts else []
        for operation in pool.step_time.breakdown(decodes, max(read - new, decodes), chunks):
            spent[operation.bound] = spent.get(operation.bound, 0.0) + operation.seconds
    return CAUSES[max(spent, key=spent.__getitem__)]


def _sample(seconds: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the leap under way in the middle of each of 64 equal parts of the busy time."""
    ends_s = np.cumsum(seconds)
    middles_s = (np.arange(SAMPLE) + 0.5) / SAMPLE * ends_s[-1]
    place: NDArray[np.int64] = np.searchsorted(ends_s, middles_s)
    return place
