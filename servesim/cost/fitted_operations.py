"""The operations of a step whose kernels are fitted: their work, and what bounds each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from servesim.cost.gpu import Gpu
from servesim.cost.interconnect import all_reduce_sent_bytes
from servesim.cost.kernels.floor import WEIGHT_BYTES
from servesim.cost.layer import Layer
from servesim.cost.model import Model
from servesim.cost.step_time import Bound, Operation
from servesim.cost.work import Work

#: Tokens below which small kernels wait for their launches rather than for memory.
_FEW_TOKENS = 512


class FittedOperations:
    """Operations of steps on one replica, given what the fitted kernels take for attention.

    What all layers do in a step is one operation; seconds are those of one GPU, all of which work alike.
    """

    def __init__(self, model: Model, gpu: Gpu, gpus: int, layer: Layer, work: Work) -> None:
        self._gpu, self._gpus, self._layer, self._work = gpu, gpus, layer, work
        self._layers = model.num_hidden_layers
        self._weight_bytes = WEIGHT_BYTES[model.weights_dtype]
        self._peak = gpu.peak_flops(model.weights_dtype)

    def dense(self, tokens: int) -> Iterator[Operation]:
        """Yield what the layers do but for their attention at ``tokens`` tokens, padding included."""
        linears = {linear.name: linear for linear in self._work.linears}
        for name, seconds in self._layer.operations.items():
            spent_s = self._layers * float(seconds(np.array([tokens], dtype=np.float64))[0])
            if name in linears:
                parameters = self._layers * linears[name].parameters
                weights = parameters * self._weight_bytes
                yield self._kernel(name, 2 * parameters * tokens, weights, self._peak, spent_s)
            elif name == "all_reduce":
                yield self._all_reduce(tokens, spent_s)
            else:
                yield Operation(name, 0.0, 0.0, spent_s, "latency" if tokens < _FEW_TOKENS else "memory")

    def decode_attention(self, read: float, queries: int, spent_s: float) -> Operation:
        """Return the attention of decodes that read so many KV tokens, with ``queries`` of each sequence."""
        flops, kv_bytes = self._work.pair_flops * (queries * read), self._work.kv_bytes * read
        return self._kernel("decode_attention", flops, kv_bytes, self._gpu.bf16_flops_per_s, spent_s)

    def prefill_attention(self, chunks: Sequence[tuple[int, int]], spent_s: float) -> Operation:
        """Return the attention of prefill chunks of (new, cached) tokens.

        A chunk of q new tokens behind p cached ones has q p + q (q + 1) / 2 query-key pairs.
        """
        pairs = sum(new * cached + new * (new + 1) // 2 for new, cached in chunks)
        kv_bytes = self._work.kv_bytes * sum(new + cached for new, cached in chunks)
        flops = self._work.pair_flops * pairs
        return self._kernel("prefill_attention", flops, kv_bytes, self._gpu.bf16_flops_per_s, spent_s)

    def head(self, rows: int) -> Operation:
        """Return the LM head at ``rows`` rows."""
        flops = 2 * self._work.head.parameters * rows
        spent_s = float(self._layer.head_seconds(np.array([rows], dtype=np.float64))[0])
        return self._kernel("lm_head", flops, self._work.head_bytes, self._gpu.bf16_flops_per_s, spent_s)

    def _all_reduce(self, tokens: int, spent_s: float) -> Operation:
        """Return the all-reduces of a step; latency bounds them where one token takes half their time."""
        calls = 2 * self._layers
        sent = all_reduce_sent_bytes(float(tokens * self._work.token_bytes), self._gpus)
        least_s = self._layers * float(self._layer.operations["all_reduce"](np.ones(1))[0])
        bound: Bound = "latency" if least_s > spent_s / 2 else "link"
        return Operation("all_reduce", 0.0, calls * sent * self._gpus, spent_s, bound)

    def _kernel(self, name: str, flops: float, hbm_bytes: float, peak: float, spent_s: float) -> Operation:
        """Return an operation from what one GPU does in it, and what bounds it.

        That is arithmetic or bandwidth, whichever the datasheet's time is longer for; or latency (launches,
        too few blocks to fill the GPU) where neither would take a quarter of the time that is spent.
        """
        compute_s, memory_s = flops / peak, hbm_bytes / self._gpu.hbm_bytes_per_s
        bound: Bound = "compute" if compute_s > memory_s else "memory"
        if max(compute_s, memory_s) < spent_s / 4:
            bound = "latency"
        return Operation(name, flops * self._gpus, hbm_bytes * self._gpus, spent_s, bound)
