"""What a step asks of the GPUs: FLOPs, and bytes of weights and KV, counted from the model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from servesim.cost.model import BF16_BYTES, KvCacheDtype, Linear, Model
from servesim.cost.step_time import FloatArray, GraphSizes


class Work:
    """The work of steps on one replica of ``gpus`` GPUs; attributes are those of one GPU.

    FLOPs and bytes are those that the GPUs execute: padding up to CUDA-graph sizes and replicated KV heads
    count. Activations are taken to stay in cache.
    """

    def __init__(self, model: Model, gpus: int, kv_cache_dtype: KvCacheDtype, graphs: GraphSizes) -> None:
        self.gpus, self.graphs = gpus, graphs
        self.layers = model.num_hidden_layers
        self.linears = model.linears(gpus)
        self.linear_bytes = model.linear_bytes(gpus)
        self.head = Linear("lm_head", -(-model.vocab_size // gpus), model.hidden_size)
        self.head_bytes = self.head.parameters * BF16_BYTES
        #: bytes of the hidden state of one token: what an all-reduce adds up
        self.token_bytes = model.hidden_size * BF16_BYTES
        self.kv_bytes = model.kv_bytes_per_token(kv_cache_dtype, gpus)
        # Score and value products: 2 FLOPs each per query-key pair and element of a query head.
        heads = model.num_attention_heads // gpus
        self.pair_flops = 4 * model.num_hidden_layers * heads * model.head_dim

    def of_runs(
        self,
        *,
        steps: NDArray[np.generic],
        tokens: NDArray[np.generic],
        rows: NDArray[np.generic],
        pairs: NDArray[np.generic],
        context: NDArray[np.generic],
    ) -> tuple[FloatArray, FloatArray]:
        """Return (FLOPs, HBM bytes) of runs of equal steps, all GPUs together (see ``StepTime.work``)."""
        count, total, heads, scores, read = (
            np.asarray(values, dtype=np.float64) for values in (steps, tokens, rows, pairs, context)
        )
        computed = self.graphs.padded_array(total / count) * count
        layer = sum(linear.parameters for linear in self.linears)
        flops = 2 * self.layers * layer * computed
        flops += 2 * self.head.parameters * heads + self.pair_flops * scores
        hbm_bytes = (self.linear_bytes + self.head_bytes) * count + self.kv_bytes * read
        return self.gpus * flops, self.gpus * hbm_bytes
