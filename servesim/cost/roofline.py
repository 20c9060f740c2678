"""Step times from the datasheet: every operation runs at the peak rate or at the memory bandwidth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from servesim.check import quantity
from servesim.cost.gpu import Gpu
from servesim.cost.interconnect import all_reduce_seconds, all_reduce_sent_bytes
from servesim.cost.model import WEIGHT_BYTES, KvCacheDtype, Linear, Model
from servesim.cost.overhead import EngineOverhead
from servesim.cost.step_time import PLAIN, Bound, Decoding, FloatArray, GraphSizes, Operation
from servesim.cost.work import Work

#: The largest step (tokens) that is looked up in a table rather than computed.
LONGEST_TABLE = 16384


@dataclass(frozen=True)
class Roofline:
    """The calibration that knows only the datasheet (Williams et al., "Roofline", CACM 52(4), 2009).

    An operation takes max(FLOPs / peak, weight and KV bytes / HBM bandwidth), a collective its ring time
    (:mod:`servesim.cost.interconnect`); operations run one after the other. Activations are assumed to
    stay in cache, and nothing is charged for launches or the host: a lower bound on real steps.
    """

    name: str = quantity(default="roofline")

    def step_time(
        self,
        model: Model,
        gpu: Gpu,
        tensor_parallel_size: int,
        kv_cache_dtype: KvCacheDtype,
        *,
        max_num_seqs: int,
        max_num_batched_tokens: int,
        overhead: EngineOverhead | None = None,
        each: Decoding = PLAIN,
    ) -> RooflineStepTime:
        """Return the step times of one replica of ``tensor_parallel_size`` GPUs.

        ``overhead`` is left out of account: the datasheet knows no engine.
        """
        graphs = GraphSizes(max_num_seqs * each.queries, max_num_batched_tokens)
        longest = min(max(max_num_seqs, max_num_batched_tokens), LONGEST_TABLE)
        return RooflineStepTime(model, gpu, tensor_parallel_size, kv_cache_dtype, graphs, longest, each)


class RooflineStepTime:
    """Step times of one replica, tabulated by tokens and rows (see :class:`StepTime`)."""

    def __init__(
        self,
        model: Model,
        gpu: Gpu,
        gpus: int,
        kv_cache_dtype: KvCacheDtype,
        graphs: GraphSizes,
        longest: int,
        each: Decoding = PLAIN,
    ) -> None:
        self._model, self._gpu, self._gpus, self._graphs = model, gpu, gpus, graphs
        self._work = Work(model, gpus, kv_cache_dtype, graphs)
        self._linear_peak = gpu.peak_flops(model.weights_dtype)
        self._pair_s = self._work.pair_flops / gpu.bf16_flops_per_s
        self._kv_s = self._work.kv_bytes / gpu.hbm_bytes_per_s
        self._queries, self._rows = each
        self._slope_s = max(self._queries * self._pair_s, self._kv_s)
        counts = np.arange(longest + 1, dtype=np.float64)
        self._layers_s: list[float] = self._layers(graphs.padded_array(counts)).tolist()
        self._heads_s: list[float] = self._lm_head(counts).tolist()
        layers_s, heads_s = self._layers_s, self._heads_s
        count = min(longest // self._queries, longest // self._rows) + 1
        self._decodes = [
            (layers + head + self._slope_s * ((self._queries - 1) * sequences), self._slope_s, inf)
            for sequences, layers, head in zip(
                range(count), layers_s[:: self._queries], heads_s[:: self._rows], strict=False
            )
        ]

    def decode(self, sequences: int, context: float) -> tuple[float, float, float]:
        """Return (base_s, slope_s, inf): the roofline is affine in context at any length.

        Every pair costs the same FLOPs and every token the same bytes, and the larger of the two wins
        at all lengths or at none.
        """
        try:
            return self._decodes[sequences]
        except IndexError:
            base_s = self._base_s(sequences * self._queries, sequences * self._rows)
            return base_s + self._slope_s * ((self._queries - 1) * sequences), self._slope_s, inf

    def mixed(self, sequences: int, context: float, chunks: Sequence[tuple[int, int]]) -> float:
        """Return the time of a step of decodes and prefill chunks of (new, cached) tokens."""
        tokens = rows = sequences
        pairs = read = context
        if self._queries > 1:
            tokens, rows, read, pairs = self._decoded(sequences, context)
        rows += len(chunks)
        for new, cached in chunks:
            tokens += new
            read += cached + new
            pairs += new * cached + new * (new + 1) // 2
        attention_s = max(self._pair_s * pairs, self._kv_s * read)
        try:
            return self._layers_s[tokens] + self._heads_s[rows] + attention_s
        except IndexError:
            return self._base_s(tokens, rows) + attention_s

    def work(
        self,
        *,
        steps: NDArray[np.generic],
        tokens: NDArray[np.generic],
        rows: NDArray[np.generic],
        pairs: NDArray[np.generic],
        context: NDArray[np.generic],
    ) -> tuple[FloatArray, FloatArray]:
        """Return (FLOPs, HBM bytes) of runs of equal steps (see :class:`StepTime`)."""
        return self._work.of_runs(steps=steps, tokens=tokens, rows=rows, pairs=pairs, context=context)

    def breakdown(self, sequences: int, context: int, chunks: Sequence[tuple[int, int]]) -> list[Operation]:
        """Return the operations of a step, in the order of a layer, and the LM head."""
        decoded, rows, read, pairs = self._decoded(sequences, context)
        tokens = self._graphs.padded(decoded + sum(new for new, _ in chunks))
        qkv, *others = (self._linear_operation(linear, tokens) for linear in self._work.linears)
        links = [self._all_reduce_operation(tokens)] if self._gpus > 1 else []
        head = self._operation(
            "lm_head",
            2 * self._work.head.parameters * (rows + len(chunks)),
            self._work.head_bytes,
            self._gpu.bf16_flops_per_s,
        )
        return [qkv, self._attention_operation(read, pairs, chunks), *others, *links, head]

    # ---- times

    def _decoded(self, sequences: int, context: float) -> tuple[int, int, float, float]:
        """Return what the decodes of a step come to: tokens, rows, KV tokens read, query-key pairs."""
        queries = self._queries
        read = context + (queries - 1) * sequences
        return queries * sequences, self._rows * sequences, read, queries * read

    def _base_s(self, tokens: int, rows: int) -> float:
        """Return the time of a step without its attention, for what is not in the tables."""
        padded = np.array([self._graphs.padded(tokens)], dtype=np.float64)
        return float((self._layers(padded) + self._lm_head(np.array([rows], dtype=np.float64)))[0])

    def _layers(self, tokens: FloatArray) -> FloatArray:
        """Return the time of all layers but their attention at ``tokens`` tokens, padding included."""
        layer_s = 2 * all_reduce_seconds(tokens * self._work.token_bytes, self._gpus, self._gpu)
        for linear in self._work.linears:
            layer_s += self._matmul(linear, tokens)
        return self._model.num_hidden_layers * layer_s

    def _matmul(self, linear: Linear, tokens: FloatArray) -> FloatArray:
        weights = linear.parameters * WEIGHT_BYTES[self._model.weights_dtype]
        flops = 2 * linear.parameters * tokens
        return np.maximum(flops / self._linear_peak, weights / self._gpu.hbm_bytes_per_s)

    def _lm_head(self, rows: FloatArray) -> FloatArray:
        flops = 2 * self._work.head.parameters * rows
        return np.maximum(
            flops / self._gpu.bf16_flops_per_s, self._work.head_bytes / self._gpu.hbm_bytes_per_s
        )

    # ---- operations

    def _operation(self, name: str, flops: float, hbm_bytes: float, peak: float) -> Operation:
        """Return an operation from what one GPU does in it."""
        compute_s, memory_s = flops / peak, hbm_bytes / self._gpu.hbm_bytes_per_s
        seconds = max(compute_s, memory_s)
        bound: Bound = "compute" if compute_s > memory_s else "memory"
        return Operation(name, flops * self._gpus, hbm_bytes * self._gpus, seconds, bound)

    def _linear_operation(self, linear: Linear, tokens: int) -> Operation:
        parameters = self._model.num_hidden_layers * linear.parameters
        weights = parameters * WEIGHT_BYTES[self._model.weights_dtype]
        return self._operation(linear.name, 2 * parameters * tokens, weights, self._linear_peak)

    def _attention_operation(self, read: float, pairs: float, chunks: Sequence[tuple[int, int]]) -> Operation:
        pairs += sum(new * cached + new * (new + 1) // 2 for new, cached in chunks)
        read += sum(new + cached for new, cached in chunks)
        return self._operation(
            "attention", self._work.pair_flops * pairs, self._work.kv_bytes * read, self._gpu.bf16_flops_per_s
        )

    def _all_reduce_operation(self, tokens: int) -> Operation:
        calls = 2 * self._model.num_hidden_layers
        sent = all_reduce_sent_bytes(float(tokens * self._work.token_bytes), self._gpus)
        seconds = all_reduce_seconds(float(tokens * self._work.token_bytes), self._gpus, self._gpu)
        bound: Bound = "link" if sent / self._gpu.nvlink_bytes_per_s > seconds / 2 else "latency"
        return Operation("all_reduce", 0.0, calls * sent * self._gpus, calls * seconds, bound)
