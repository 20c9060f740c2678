"""The columns of a run folder's tables, worked out from the raw rows of the log.

Raw rows are doubles in the order of ``servesim.engine.log``; here they become typed columns. What has not
happened is null: in a file, a NaN would poison the averages of any tool that reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from servesim.cluster.deployment import Deployment
from servesim.cost.speculative import SpeculativeStepTime
from servesim.cost.step_time import StepTime
from servesim.engine.log import COMPLETED, DROPPED, GAP_FIELDS, REASONS, REQUEST_FIELDS, STATUSES, STEP_FIELDS
from servesim.results.arrow import INDEX, WORD

Floats = NDArray[np.float64]
Columns = Mapping[str, NDArray[Any]]

#: The parts of a request's end-to-end time, in the order of its life; they sum to ``e2e_s``.
PARTS = ("routing", "queue", "prefill", "preempted", "transfer", "decode_queue", "decode")

REQUESTS = pa.schema(
    [
        ("request_id", pa.int64()),
        ("sent_s", pa.float64()),
        ("client_queue_s", pa.float64()),
        ("input_tokens", pa.int64()),
        ("output_tokens", pa.int64()),
        ("generated_tokens", pa.int64()),
        ("status", WORD),
        ("reason", WORD),
        ("replica", INDEX),
        ("prefill_replica", INDEX),
        ("ttft_s", pa.float64()),
        ("tpot_s", pa.float64()),
        ("e2e_s", pa.float64()),
        ("ended_s", pa.float64()),
        *((f"{part}_s", pa.float64()) for part in PARTS),
        ("preemptions", pa.int64()),
        ("cached_tokens", pa.int64()),
        ("recovered_tokens", pa.int64()),
        ("loaded_tokens", pa.int64()),
        ("session", INDEX),
        ("turn", pa.int64()),
        ("tenant", pa.int64()),
        ("priority", pa.int64()),
        ("attempt", pa.int64()),
    ]
)

STEPS = pa.schema(
    [
        ("replica", INDEX),
        ("start_s", pa.float64()),
        ("first_step_s", pa.float64()),
        ("increment_s", pa.float64()),
        ("steps", pa.int64()),
        ("sequences", pa.int64()),
        ("decodes", pa.int64()),
        ("prefill_tokens", pa.int64()),
        ("context_tokens", pa.int64()),
        ("kv_blocks", pa.int64()),
        ("kv_blocks_last", pa.int64()),
        ("waiting", pa.int64()),
        ("flops", pa.float64()),
        ("hbm_bytes", pa.float64()),
        ("preempted", pa.int64()),
        ("stalled", pa.int64()),
        ("emitted_tokens", pa.float64()),
    ]
)

GAPS = pa.schema(
    [("request_id", INDEX), ("end_s", pa.float64()), ("gap_s", pa.float64()), ("sequences", pa.int64())]
)

#: The words that the codes of a column stand for.
WORDS = {"status": STATUSES, "reason": REASONS}


def request_columns(rows: Floats) -> Columns:
    """Return the columns of :data:`REQUESTS` from raw rows, shape (fields, requests).

    What a request waited in the client, from being due to being sent, is no part of its latencies. TTFT is
    from sending to the first token, E2E to the last; TPOT = (E2E - TTFT) / (tokens - 1) for more
    than one token, as ``vllm bench serve`` defines them. E2E and TPOT are null unless the request
    completed. The decode part is what the others leave of E2E. A request ends when its last token leaves,
    when it is turned away or when its client hangs up; one that was cut has no end.
    """
    raw = dict(zip(REQUEST_FIELDS, rows, strict=True))
    raw["client_queue_s"] = raw["sent_s"] - raw["due_s"]
    raw["routing_s"] = raw["arrived_s"] - raw["sent_s"]
    ttft = raw["first_token_s"] - raw["sent_s"]
    e2e = np.where(raw["status"] == COMPLETED, raw["finished_s"] - raw["sent_s"], np.nan)
    ended = np.where(raw["status"] == DROPPED, raw["arrived_s"], raw["finished_s"])
    further = raw["generated"] - 1
    tpot = np.divide(e2e - ttft, further, out=np.full_like(e2e, np.nan), where=further > 0)
    parts = {f"{part}_s": raw[f"{part}_s"] for part in PARTS if f"{part}_s" in raw}
    rest = e2e - sum(parts.values())
    rest[np.abs(rest) < 1e-9] = 0.0  # the rounding of the sums, where nothing was decoded
    return {
        **raw,
        "generated_tokens": raw["generated"],
        "ttft_s": ttft,
        "tpot_s": tpot,
        "e2e_s": e2e,
        "ended_s": ended,
        **parts,
        "decode_s": rest,
    }


def step_columns(rows: Floats, deployments: Sequence[Deployment]) -> Columns:
    """Return the columns of :data:`STEPS` from raw rows, shape (fields, leaps).

    ``flops`` and ``hbm_bytes`` are those of all steps of the leap on all GPUs of the replica.
    """
    raw = dict(zip(STEP_FIELDS, rows, strict=True))
    flops, hbm_bytes = np.empty_like(raw["steps"]), np.empty_like(raw["steps"])
    for deployment, rows_of_pool in pools_of(raw["replica"], deployments):
        leaps = {name: column[rows_of_pool] for name, column in raw.items()}
        flops[rows_of_pool], hbm_bytes[rows_of_pool] = _work(leaps, deployment.step_time)
    return {**raw, "emitted_tokens": raw["emitted"], "flops": flops, "hbm_bytes": hbm_bytes}


def _work(leaps: Mapping[str, Floats], step_time: StepTime) -> tuple[Floats, Floats]:
    """Return (FLOPs, HBM bytes) of leaps of one pool.

    Context and pairs grow by one per row and step, so their sum over n steps is n times the first step's
    plus rows x n (n - 1) / 2. Of speculative decoding they grow by the tokens that a step emits, pairs by
    these times the queries of a sequence.
    """
    steps, prefill = leaps["steps"], leaps["prefill_tokens"]
    decodes = np.where(prefill > 0, leaps["decodes"], leaps["sequences"])
    totals = {"steps": steps, "tokens": steps * (prefill + decodes), "rows": steps * leaps["sequences"]}
    times = steps * (steps - 1) / 2
    if isinstance(step_time, SpeculativeStepTime):
        growth = leaps["emitted"] * times
        pairs = steps * leaps["pairs"] + step_time.each.queries * growth
        context = steps * leaps["context_tokens"] + growth
        return step_time.work(**totals, pairs=pairs, context=context, decodes=steps * decodes)
    growth = leaps["sequences"] * times
    pairs, context = steps * leaps["pairs"] + growth, steps * leaps["context_tokens"] + growth
    return step_time.work(**totals, pairs=pairs, context=context)


def gap_columns(rows: Floats) -> Columns:
    """Return the columns of :data:`GAPS` from raw rows, shape (fields, gaps)."""
    return dict(zip(GAP_FIELDS, rows, strict=True))


def pools_of(
    replica: NDArray[Any], deployments: Sequence[Deployment]
) -> list[tuple[Deployment, slice | NDArray[np.bool_]]]:
    """Return each pool with the index of the rows whose ``replica`` is one of its own."""
    if len(deployments) == 1:
        return [(deployments[0], slice(None))]
    return [
        (pool, (replica >= pool.first_replica) & (replica < pool.first_replica + pool.replicas))
        for pool in deployments
    ]
