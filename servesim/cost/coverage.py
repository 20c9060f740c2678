"""How much of simulated time rests on measurements: inside, between and outside what was calibrated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from servesim.cost.kernel_set import KernelSet, Ranges
from servesim.cost.kernels.smooth import Values
from servesim.cost.layer import Layer
from servesim.cost.model import BF16_BYTES, Model
from servesim.cost.overhead import EngineOverhead
from servesim.cost.step_time import PLAIN, Decoding, FloatArray, GraphSizes

Mask = NDArray[np.bool_]

#: The prefix of the operations that are not kernels but terms of the engine.
HOST = "host"


class Steps(NamedTuple):
    """Runs of equal steps, one array entry each, as a run folder's ``steps.parquet`` has them.

    ``seconds`` are of all ``steps`` of the run; ``context_tokens`` are of its first step.
    """

    seconds: FloatArray
    steps: FloatArray
    sequences: FloatArray
    decodes: FloatArray
    prefill_tokens: FloatArray
    context_tokens: FloatArray

    @property
    def decoding(self) -> FloatArray:
        """Sequences that decode in one step, padded rows included."""
        return np.where(self.prefill_tokens > 0, self.decodes, self.sequences)


class Spent(NamedTuple):
    """Seconds of one operation: inside the calibrated ranges, between what was measured, and outside.

    *Between* is what is put together from measured parts: attention over decodes and chunks at once, or
    over a cached prefix; small kernels, timed as quantisation of as many bytes; the terms of the engine,
    fitted on whole runs, for no more sequences than those had.
    """

    calibrated: float
    interpolated: float
    extrapolated: float

    def plus(self, other: Spent | None) -> Spent:
        """Return the sums of both, place by place."""
        return self if other is None else Spent(*(one + more for one, more in zip(self, other, strict=True)))


class Coverage:
    """The coverage of one replica's steps, by operation; attention is what the others leave of a step."""

    def __init__(
        self,
        model: Model,
        gpus: int,
        layer: Layer,
        kernels: KernelSet,
        graphs: GraphSizes,
        overhead: EngineOverhead | None,
        each: Decoding = PLAIN,
    ) -> None:
        self._each = each
        self._model, self._gpus, self._layer = model, gpus, layer
        self._kernels, self._graphs = kernels, graphs
        self._step_s, self._sequence_s = (overhead.step_s, overhead.sequence_s) if overhead else (0.0, 0.0)
        self._most_sequences = overhead.most_sequences if overhead else np.inf

    def spent(self, steps: Steps) -> dict[str, Spent]:
        """Return what the steps spent in each operation."""
        decoding = steps.decoding
        tokens = self._graphs.padded_array(steps.prefill_tokens + self._each.queries * decoding)
        rows = steps.sequences + (self._each.rows - 1) * decoding
        host_s = steps.steps * (self._step_s + self._sequence_s * rows)
        fitted = steps.sequences <= self._most_sequences
        found: dict[str, Spent] = {HOST: _summed(host_s, np.zeros_like(fitted), fitted)}
        rest = steps.seconds - host_s
        for amounts, operations in ((tokens, self._layer_operations), (rows, self._head_operation)):
            counts = amounts.astype(np.int64)
            often = np.bincount(counts, weights=steps.steps).astype(np.float64)
            used = often > 0
            each_s: FloatArray = np.zeros_like(often)
            for name, seconds, inside, between in operations(np.flatnonzero(used).astype(np.float64)):
                each_s[used] += seconds
                found[name] = _summed(seconds * often[used], inside, between)
            rest -= steps.steps * each_s[counts]
        return {"attention": _summed(np.maximum(rest, 0.0), *self._attention(steps)), **found}

    def _layer_operations(self, tokens: FloatArray) -> Iterator[tuple[str, FloatArray, Mask, Mask]]:
        """Yield each operation of the layers but attention: seconds, whether inside, whether between."""
        for name, operation in self._layer.operations.items():
            inside = self._inside(name, tokens)
            between = np.full(tokens.shape, name == "small_kernels" and self._has_small)
            yield name, self._model.num_hidden_layers * operation(tokens), inside, between

    def _head_operation(self, rows: FloatArray) -> Iterator[tuple[str, FloatArray, Mask, Mask]]:
        """Yield the LM head in the same way."""
        head = self._layer.head
        inside = within(self._ranges("lm_head"), m=rows, n=head.outputs, k=head.inputs)
        yield "lm_head", self._layer.head_seconds(rows), inside, np.zeros(rows.shape, dtype=bool)

    @property
    def _has_small(self) -> bool:
        return "quantise" in self._kernels.ranges

    def _ranges(self, operation: str) -> Ranges | None:
        return self._kernels.ranges.get(operation)

    def _inside(self, name: str, tokens: FloatArray) -> Mask:
        """Tell whether an operation of the layer is calibrated for steps of these tokens."""
        for linear in self._layer.linears:
            if linear.name == name:
                return within(self._ranges("gemm"), m=tokens, n=linear.outputs, k=linear.inputs)
        if name == "all_reduce":
            return within(self._ranges(name), bytes=tokens * self._model.hidden_size * BF16_BYTES)
        if name == "quantise":
            depths = [linear.inputs for linear in self._layer.linears]
            shallow, deep = (within(self._ranges(name), m=tokens, k=end(depths)) for end in (min, max))
            return shallow & deep
        return np.zeros(tokens.shape, dtype=bool)

    def _attention(self, steps: Steps) -> tuple[Mask, Mask]:
        """Tell whether the attention of steps is calibrated, and if not, whether it is between."""
        heads = self._model.num_attention_heads // self._gpus
        kv_heads = self._model.kv_heads_per_gpu(self._gpus)
        decodes = steps.decoding
        chunks = steps.sequences - decodes
        mean = (steps.context_tokens - steps.prefill_tokens) / np.maximum(decodes, 1)
        decoded = within(self._ranges("decode_attention"), batch=decodes, kv_heads=kv_heads, length=mean)
        length = steps.prefill_tokens / np.maximum(chunks, 1)
        prefilled = within(self._ranges("prefill_attention"), batch=chunks, heads=heads, length=length)
        both = (decoded | (decodes == 0)) & (prefilled | (chunks == 0))
        plain = (chunks == 0) | (steps.context_tokens <= steps.prefill_tokens)
        return both & plain, both & ~plain


def within(ranges: Ranges | None, **sizes: Values) -> Mask:
    """Tell whether sizes lie in the ranges of their names; nothing lies in no ranges."""
    if ranges is None:
        return np.zeros(np.broadcast_shapes(*(np.shape(size) for size in sizes.values())), dtype=bool)
    inside = np.ones(np.broadcast_shapes(*(np.shape(size) for size in sizes.values())), dtype=bool)
    for name, size in sizes.items():
        low, high = ranges.get(name, (-np.inf, np.inf))
        inside &= (np.asarray(size) >= low) & (np.asarray(size) <= high)
    return inside


def _summed(seconds: FloatArray, inside: Mask, between: Mask) -> Spent:
    parts = (inside, between & ~inside, ~(inside | between))
    return Spent(*(float(np.sum(seconds, where=part)) for part in parts))


def shares(spent: Mapping[str, Spent]) -> dict[str, Spent]:
    """Return each operation's seconds as shares of the sum of all; nothing where there is none."""
    total = sum(sum(each) for each in spent.values())
    if not total:
        return {}
    return {name: Spent(*(seconds / total for seconds in each)) for name, each in spent.items()}
