"""Records made by hand: a pool with round figures, requests and steps with only what matters."""

from __future__ import annotations

from math import nan
from pathlib import Path
from typing import Any

from servesim.cluster.deployment import Deployment, Role
from servesim.cost.gpu import Gpu
from servesim.cost.memory import MemorySheet
from servesim.cost.power import BoardPower
from servesim.engine.log import COMPLETED, GAP_FIELDS, QUEUED, REQUEST_FIELDS, STEP_FIELDS
from servesim.results.accounting import Facts
from servesim.results.pricing import Pricing
from servesim.results.records import Records
from servesim.results.slo import Slo
from servesim.results.summary import summarise
from tests.costs import AffineStepTime

GPU = Gpu(
    name="round",
    memory_bytes=1000,
    hbm_bytes_per_s=100.0,
    bf16_flops_per_s=1000.0,
    fp8_flops_per_s=2000.0,
    nvlink_bytes_per_s=1.0,
    nvlink_latency_s=0.0,
    pcie_bytes_per_s=1.0,
    nic_bytes_per_s=1.0,
    nic_latency_s=0.0,
    idle_w=100.0,
    max_w=300.0,
    usd_per_hour=3.6,
)
SHEET = MemorySheet(
    gpu_bytes=1000,
    gpu_memory_utilization=0.9,
    weights_bytes=500,
    activation_bytes=100,
    runtime_bytes=100,
    kv_bytes=200,
    kv_bytes_per_token=5,
    block_size=5,
    blocks=8,
    overridden=False,
)


def pool(role: Role = "serve", first_replica: int = 0, replicas: int = 1, gpu: Gpu = GPU) -> Deployment:
    """Return a pool of replicas of two GPUs with 8 KV blocks each.

    Its step time counts one FLOP per token and pair, one byte per step, row and context token.
    """
    return Deployment(role, gpu, replicas, 2, first_replica, SHEET, AffineStepTime(), 8, 10, 40)


def request(sent_s: float, first_token_s: float = nan, finished_s: float = nan, **fields: Any) -> list[float]:
    """Return the raw row of a request; by default it completed on replica 0, scheduled when it was sent."""
    scheduled_s = fields.pop("scheduled_s", sent_s)
    row = dict.fromkeys(REQUEST_FIELDS, 0.0) | {
        **dict.fromkeys(("due_s", "sent_s", "arrived_s"), sent_s),
        "input_tokens": 4,
        "output_tokens": 2,
        "status": COMPLETED,
        "prefill_replica": -1,
        "first_token_s": first_token_s,
        "finished_s": finished_s,
        "generated": fields.get("output_tokens", 2),
        "queue_s": scheduled_s - sent_s,
        "prefill_s": first_token_s - scheduled_s,
    }
    return list((row | fields).values())


def waiting(sent_s: float, **fields: Any) -> list[float]:
    """Return the raw row of a request that was never scheduled."""
    fields = {"status": QUEUED, "scheduled_s": nan, "prefill_s": 0.0, "generated": 0, "replica": -1} | fields
    return request(sent_s, **fields)


def step(start_s: float, first_step_s: float, **fields: float) -> list[float]:
    """Return the raw row of a leap; by default one decode step of one sequence on replica 0."""
    row = dict.fromkeys(STEP_FIELDS, 0.0) | {
        "start_s": start_s,
        "first_step_s": first_step_s,
        "steps": 1,
        "sequences": 1,
        "decodes": 1,
        "emitted": fields.get("decodes", 1),
    }
    assert set(fields) <= set(row)
    return list((row | fields).values())


def gap(request_id: int, end_s: float, gap_s: float) -> list[float]:
    """Return the raw row of a gap between two tokens that is not one step long."""
    return [request_id, end_s, gap_s, 1]


def records(
    requests: list[list[float]],
    steps: list[list[float]] | None = None,
    gaps: list[list[float]] | None = None,
    pools: list[Deployment] | None = None,
    folder: Path | None = None,
) -> Records:
    """Return closed records of raw rows."""
    made = Records(pools or [pool()], folder)
    for buffer, rows, fields in (
        (made.requests, requests, REQUEST_FIELDS),
        (made.steps, steps or [], STEP_FIELDS),
        (made.gaps, gaps or [], GAP_FIELDS),
    ):
        for row in rows:
            assert len(row) == len(fields)
            buffer.extend(row)
    made.close()
    return made


def facts(injected: int, **known: Any) -> Facts:
    """Return the facts of an open-loop run without anything special."""
    plain = {
        "warmup": 0,
        "held_due_s": (),
        "retries_pending": 0,
        "not_sent": 0,
        "length_capped": 0,
        "zero_output_rows": 0,
        "horizon_s": None,
        "events": 0,
        "batched": False,
    }
    return Facts(**{"injected": injected, "open_loop": True, "cpu_started_s": 0.0} | plain | known)


def summary(made: Records, pools: list[Deployment] | None = None, **options: Any) -> dict[str, Any]:
    """Return the summary of records; ``options`` replace the arguments of ``summarise``."""
    arguments: dict[str, Any] = {
        "slo": Slo(ttft_s=0.5, tpot_s=0.1875),
        "pricing": Pricing(),
        "weights_dtype": "bf16",
        "board_power": BoardPower(),
        "calibration": "roofline",
        "scenario": {"seed": 0},
        "transfer": None,
        "steady": False,
    }
    known = options.pop("facts", None) or facts(len(made.request_table))
    return summarise(made, pools or [pool()], known, **arguments | options)
