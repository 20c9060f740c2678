"""The links between the GPUs of one replica."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from servesim.cost.gpu import Gpu

Bytes = TypeVar("Bytes", float, NDArray[np.float64])


def all_reduce_sent_bytes(message_bytes: Bytes, gpus: int) -> Bytes:
    """Return the bytes that each GPU sends in a ring all-reduce: 2 (t - 1) / t x the message.

    Reduce-scatter and all-gather each send (t - 1) chunks of 1/t of the message (Thakur et al., 2005).
    """
    return message_bytes * (2 * (gpus - 1) / gpus)


def all_reduce_seconds(message_bytes: Bytes, gpus: int, gpu: Gpu) -> Bytes:
    """Return the time of one ring all-reduce over NVLink: bytes sent / link speed + 2 (t - 1) hops.

    The form is the one of NCCL's tuning model for rings (NVIDIA/nccl, src/graph/tuning.cc: 2 (ranks - 1)
    steps, each with the hardware's hop latency), here at the datasheet's link speed.
    """
    hops = 2 * (gpus - 1) * gpu.nvlink_latency_s
    return all_reduce_sent_bytes(message_bytes, gpus) / gpu.nvlink_bytes_per_s + hops
