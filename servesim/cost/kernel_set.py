"""The kernels of one replica's step: a form for each, and the sizes that it is calibrated for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from servesim.cost.gpu import Gpu
from servesim.cost.interconnect import all_reduce_seconds
from servesim.cost.kernels.all_reduce import AllReduce
from servesim.cost.kernels.decode_attention import DecodeAttention
from servesim.cost.kernels.elementwise import Elementwise
from servesim.cost.kernels.gemm import Gemm
from servesim.cost.kernels.prefill_attention import PrefillAttention
from servesim.cost.kernels.smooth import FloatArray, Values

#: The least and the largest of each size that a form was fitted on.
Ranges = Mapping[str, tuple[float, float]]

#: Kernels that go once through the activations, where a profile has no table of any: as they are on an
#: H100 under vLLM (static quantisation to FP8, conf/calibration/h100-sxm-vllm.yaml).
ASSUMED_ELEMENTWISE = Elementwise(
    launch_s=1.976e-6, row_s=5.135e-7, cache_bytes=16.76e6, cache_bandwidth=1.904, bandwidth=0.7983
)


@dataclass(frozen=True)
class Ring:
    """An all-reduce at the datasheet's link speed, where a profile has none (see ``interconnect``)."""

    gpus: int

    def seconds(self, gpu: Gpu, message_bytes: Values) -> FloatArray:
        """Return the time in seconds."""
        return all_reduce_seconds(np.asarray(message_bytes, dtype=np.float64), self.gpus, gpu)


@dataclass(frozen=True)
class KernelSet:
    """The forms that a step of one model, GPU, parallelism and precision is made of.

    ``elementwise`` stands for quantisation and, with their own bytes, for norms, rotary embedding,
    activation and KV write; ``quantised`` says whether activations are quantised. ``ranges`` are by
    operation; one that is not in it has no table of its own on this GPU: it is extrapolated.
    """

    gemm: Gemm
    head: Gemm
    decode: DecodeAttention
    prefill: PrefillAttention
    elementwise: Elementwise
    all_reduce: AllReduce | Ring
    quantised: bool
    ranges: Mapping[str, Ranges] = field(default_factory=dict)


def ranges_of(said: Mapping[str, Any]) -> Ranges:
    """Return ranges as a profile says them: [least, largest] by size."""
    return {size: (float(low), float(high)) for size, (low, high) in said.items()}
