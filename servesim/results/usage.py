"""How busy the GPUs were: in compute, in bandwidth, in memory, in time and in power."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from servesim.cluster.deployment import Deployment
from servesim.cost.power import BoardPower
from servesim.results.columns import pools_of
from servesim.results.rates import ratio
from servesim.results.records import Records
from servesim.results.window import Window

Floats = NDArray[np.float64]
SHARES = ("compute", "bandwidth", "kv_cache", "busy")
_COLUMNS = (
    "replica",
    "start_s",
    "first_step_s",
    "increment_s",
    "steps",
    "flops",
    "hbm_bytes",
    "kv_blocks",
    "kv_blocks_last",
)


@dataclass
class Usage:
    """What the steps of one pool amount to within a window, all its replicas together.

    ``flops`` and ``hbm_bytes`` are of all its GPUs, ``busy_s`` is in seconds of replicas, ``block_s`` in
    KV blocks held times seconds of steps, ``step_joules`` the energy of all its GPUs in steps.
    """

    pool: Deployment
    board_power: BoardPower
    peak_flops: float
    busy_s: float = 0.0
    flops: float = 0.0
    hbm_bytes: float = 0.0
    block_s: float = 0.0
    step_joules: float = 0.0

    def add(self, seconds: Floats, share: Floats, flops: Floats, hbm_bytes: Floats, blocks: Floats) -> None:
        """Add leaps of ``seconds`` with the ``share`` of each that lies in the window."""
        gpus, gpu = self.pool.tensor_parallel_size, self.pool.gpu
        inside_s = seconds * share
        compute = flops / (seconds * gpus * self.peak_flops)
        bandwidth = hbm_bytes / (seconds * gpus * gpu.hbm_bytes_per_s)
        self.busy_s += float(inside_s.sum())
        self.flops += float((flops * share).sum())
        self.hbm_bytes += float((hbm_bytes * share).sum())
        self.block_s += float((blocks * inside_s).sum())
        self.step_joules += gpus * float(
            self.board_power.energy_joules(compute, bandwidth, inside_s, gpu).sum()
        )

    def shares(self, length_s: float) -> dict[str, float]:
        """Return the mean shares of the pool's peaks, of its KV blocks, and of its time spent in steps."""
        gpu_s = self.pool.gpus * length_s
        replica_s = self.pool.replicas * length_s
        return {
            "compute": ratio(self.flops, gpu_s * self.peak_flops),
            "bandwidth": ratio(self.hbm_bytes, gpu_s * self.pool.gpu.hbm_bytes_per_s),
            "kv_cache": ratio(self.block_s, replica_s * self.pool.kv_blocks),
            "busy": ratio(min(self.busy_s, replica_s), replica_s),  # a sum of steps is rounded
        }

    def joules(self, length_s: float) -> float:
        """Return the energy of the pool over the window: its steps, and idle power the rest of the time."""
        idle_s = self.pool.gpus * length_s - self.pool.tensor_parallel_size * self.busy_s
        return self.step_joules + idle_s * float(self.board_power.power_w(0.0, 0.0, self.pool.gpu))


def usage(
    records: Records,
    deployments: Sequence[Deployment],
    weights_dtype: str,
    board_power: BoardPower,
    window: Window,
) -> list[Usage]:
    """Return the usage of each pool within the window.

    A leap that crosses an end of the window counts with the share of its time inside. KV blocks are taken
    to grow evenly over a leap (the trapezoid rule), and to be empty between steps.
    """
    used = [Usage(pool, board_power, pool.gpu.peak_flops(weights_dtype)) for pool in deployments]
    for replica, start_s, first_s, increment_s, steps, *amounts, first, last in records.step_table.groups(
        *_COLUMNS
    ):
        seconds = steps * first_s + increment_s * (steps * (steps - 1) / 2)
        share = window.overlap_s(start_s, start_s + seconds) / seconds
        columns = (seconds, share, *amounts, (first + last) / 2)
        for pool, (_, rows) in zip(used, pools_of(replica, deployments), strict=True):
            pool.add(*(column[rows] for column in columns))
    return used


def utilisation(used: Sequence[Usage], length_s: float) -> dict[str, Any]:
    """Return the mean shares over paid GPU time, and for two pools also each one's own.

    Compute is against the peak of the weights' dtype, attention's BF16 work included.
    """
    gpus = sum(usage.pool.gpus for usage in used)
    own = {usage.pool.role: usage.shares(length_s) for usage in used}
    mean = {
        name: sum(usage.pool.gpus * own[usage.pool.role][name] for usage in used) / gpus for name in SHARES
    }
    return {**mean, "roles": own if len(used) > 1 else None}


def energy(
    used: Sequence[Usage], board_power: BoardPower, length_s: float, output_tokens: int
) -> dict[str, Any]:
    """Return the energy of all boards over the window (J), per token emitted in it, and what it rests on."""
    joules = sum(usage.joules(length_s) for usage in used)
    return {
        "joules": joules,
        "joules_per_output_token": ratio(joules, output_tokens),
        "power_weights": {
            "compute": board_power.compute_weight,
            "bandwidth": board_power.bandwidth_weight,
            "source": board_power.name,
        },
    }
