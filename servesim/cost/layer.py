"""What a layer does beside its attention, and the LM head: all that depends on tokens alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from servesim.cost.gpu import Gpu
from servesim.cost.kernel_set import KernelSet
from servesim.cost.kernels.gemm import Gemm
from servesim.cost.model import BF16_BYTES, KV_BYTES, KvCacheDtype, Linear, Model
from servesim.cost.step_time import FloatArray

#: Products have a multiple of this many rows: engines pad them (FP8 kernels are slow, or refuse, otherwise).
ROWS = 4

#: The seconds of one operation in one layer, by tokens.
Seconds = Callable[[FloatArray], FloatArray]


class Layer:
    """The operations of one layer on one GPU but for its attention, each with its seconds by tokens.

    ``operations`` are, in order of a breakdown: the four projections, ``quantise`` (the inputs of the four,
    where they are multiplied in FP8), ``small_kernels`` and ``all_reduce`` (two, where GPUs share a layer).
    The small kernels go once through their activations: two norms with the residual added (read and written
    twice), rotary embedding of queries and keys, writing of keys and values, the gated activation, and where
    a model has them norms of queries and keys.
    """

    def __init__(
        self, model: Model, gpu: Gpu, gpus: int, kv_cache_dtype: KvCacheDtype, kernels: KernelSet
    ) -> None:
        self._model, self._gpu, self._gpus = model, gpu, gpus
        self._kernels, self._kv_bytes = kernels, KV_BYTES[kv_cache_dtype]
        self.linears = model.linears(gpus)
        self.head = Linear("lm_head", -(-model.vocab_size // gpus), model.hidden_size)
        self.operations: dict[str, Seconds] = {
            linear.name: partial(self._product, kernels.gemm, linear) for linear in self.linears
        }
        if kernels.quantised:
            self.operations["quantise"] = self._quantise
        self.operations["small_kernels"] = self._small_kernels
        if gpus > 1:
            self.operations["all_reduce"] = self._all_reduces

    def seconds(self, tokens: FloatArray) -> FloatArray:
        """Return the time of all operations at ``tokens`` tokens, padding included; equal entries once."""
        distinct, place = np.unique(tokens, return_inverse=True)
        total = np.zeros_like(distinct)
        for operation in self.operations.values():
            total += operation(distinct)
        return total[place]

    def head_seconds(self, rows: FloatArray) -> FloatArray:
        """Return the time of the LM head at ``rows`` rows."""
        distinct, place = np.unique(_padded(rows), return_inverse=True)
        return self._product(self._kernels.head, self.head, distinct)[place]

    def _product(self, form: Gemm, linear: Linear, tokens: FloatArray) -> FloatArray:
        return form.seconds(self._gpu, _padded(tokens), linear.outputs, linear.inputs)

    def _quantise(self, tokens: FloatArray) -> FloatArray:
        kernel, rows = self._kernels.elementwise, _padded(tokens)
        return sum(
            (kernel.seconds(self._gpu, rows, linear.inputs) for linear in self.linears), np.zeros_like(tokens)
        )

    def _small_kernels(self, tokens: FloatArray) -> FloatArray:
        kernel = self._kernels.elementwise
        return sum(
            (kernel.seconds(self._gpu, tokens, width, size) for width, size in self._passes()),
            np.zeros_like(tokens),
        )

    def _passes(self) -> list[tuple[int, int]]:
        """Return (elements of a token, bytes read and written per element) of each small kernel."""
        model, gpus = self._model, self._gpus
        key_value = 2 * model.kv_heads_per_gpu(gpus) * model.head_dim
        query_key = model.num_attention_heads // gpus * model.head_dim + key_value // 2
        norms = [(model.hidden_size, 4 * BF16_BYTES)] * 2
        heads = [(query_key, 2 * BF16_BYTES)] * (2 if model.qk_norm else 1)
        written = (key_value, BF16_BYTES + self._kv_bytes)
        return [*norms, *heads, written, (model.intermediate_size // gpus, 3 * BF16_BYTES)]

    def _all_reduces(self, tokens: FloatArray) -> FloatArray:
        message = tokens * (self._model.hidden_size * BF16_BYTES)
        return 2 * self._kernels.all_reduce.seconds(self._gpu, message)


def _padded(tokens: FloatArray) -> FloatArray:
    return np.maximum(np.ceil(tokens / ROWS), 1) * ROWS
