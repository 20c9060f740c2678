"""Step times from fitted kernels: the sum of a step's kernels, and what the engine adds to them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from servesim.cost import tables
from servesim.cost.chunks import ChunkAttention
from servesim.cost.coverage import Coverage
from servesim.cost.fitted_operations import FittedOperations
from servesim.cost.gpu import Gpu
from servesim.cost.kernel_set import KernelSet
from servesim.cost.layer import Layer
from servesim.cost.model import KvCacheDtype, Model
from servesim.cost.overhead import EngineOverhead
from servesim.cost.segments import LENGTHS, PIECES, Piece, limit, straight_pieces
from servesim.cost.step_time import PLAIN, Decoding, FloatArray, GraphSizes, Operation
from servesim.cost.work import Work

#: The most sequences for which a step is tabulated in advance; few runs have more, and the tables grow.
MANY = 256

#: The most tokens of a step that are tabulated in advance, whatever the engine's limit is.
LONGEST = 131_072

_TABLES = 5  # arrays that a file of tables holds


class FittedStepTime:
    """Step times of one replica from fitted kernels (see :class:`StepTime`).

        step = layers x (projections, quantisation, small kernels, all-reduces: by tokens
                         + one attention over the decodes and the prefill chunks)
             + LM head: by rows + host time per step and per sequence
             + (prefill factor - 1) x what the prefill tokens take alone, beyond a step of one token

    The layers' dense part and the LM head are tabulated by tokens and rows; decode attention is compiled
    into straight pieces of total context. Tokens are padded up to CUDA-graph sizes and products to
    multiples of 4 rows. In a step with chunks the attention is one call: it is launched once. Without an
    ``overhead`` a step is its kernels alone.

    Times do not decrease in tokens, in context, or in sequences of no less than the mean length. They may
    where a short sequence joins long ones: only the total context is known, and it is spread evenly.

    The queries of a sequence that decodes several tokens share a tile of decode attention with the heads of
    their group: it takes the form's time for one query, or the arithmetic of them all where that is longer.
    """

    def __init__(
        self,
        model: Model,
        gpu: Gpu,
        gpus: int,
        kv_cache_dtype: KvCacheDtype,
        kernels: KernelSet,
        overhead: EngineOverhead | None,
        *,
        max_num_seqs: int,
        max_num_batched_tokens: int,
        each: Decoding = PLAIN,
    ) -> None:
        self._queries, self._sampled = each
        self._several = each != PLAIN
        graphs = GraphSizes(max_num_seqs * self._queries, max_num_batched_tokens)
        self.kernels = kernels
        self._gpu, self._graphs = gpu, graphs
        self._work = Work(model, gpus, kv_cache_dtype, graphs)
        self._layer = Layer(model, gpu, gpus, kv_cache_dtype, kernels)
        self._operations = FittedOperations(model, gpu, gpus, self._layer, self._work)
        self._layers = model.num_hidden_layers
        self._shape = (model.num_attention_heads // gpus, model.kv_heads_per_gpu(gpus), model.head_dim)
        self._chunks = ChunkAttention(kernels.prefill, gpu, self._shape, self._layers)
        self._step_s = overhead.step_s if overhead else 0.0
        self._sequence_s = overhead.sequence_s if overhead else 0.0
        self._factor = overhead.prefill_factor if overhead else 1.0
        # Beside decodes, a call is launched once: the longer of the two launches counts.
        self._further_launch_s = max(self._chunks.launch_s - self._layers * kernels.decode.launch_s, 0.0)
        self._dense_s: list[float] = []
        self._slower_s: list[float] = []
        self._rows_s: list[float] = []
        self._beside_s: list[float] = [0.0]
        self._straight: list[tuple[list[float], list[float]]] = [([], [])]
        self._pieces: list[list[Piece | None]] = [[]]
        self.coverage = Coverage(model, gpus, self._layer, kernels, graphs, overhead, each)
        many = min(max_num_seqs, MANY)
        tokens = max(max_num_seqs * self._queries, max_num_batched_tokens)
        reach = (min(tokens, LONGEST), many * self._sampled, many)
        self._compile(reach, (model, gpu, gpus, kv_cache_dtype, kernels, overhead, graphs.sizes, each))

    # ---- the hot path

    def decode(self, sequences: int, context: float) -> tuple[float, float, float]:
        """Return (base_s, slope_s, limit) of the piece that a decode-only step lies on."""
        place = bisect_left(LENGTHS, context / sequences)
        try:
            return self._pieces[sequences][place] or self._piece(sequences, place)
        except IndexError:
            self._reach(sequences, sequences, sequences)
            return self._piece(sequences, place)

    def mixed(self, sequences: int, context: float, chunks: Sequence[tuple[int, int]]) -> float:
        """Return the time of a step of decodes and prefill chunks of (new, cached) tokens."""
        seconds = self._chunks.launch_s
        if sequences:
            base_s, slope_s, _ = self.decode(sequences, context)
            seconds = base_s + slope_s * context
            if not chunks:
                return seconds
            seconds -= self._beside_s[sequences] - self._further_launch_s
        new, attention_s = self._chunks.seconds(chunks)
        tokens, rows = sequences + new, sequences + len(chunks)
        if self._several:
            tokens += (self._queries - 1) * sequences
            rows += (self._sampled - 1) * sequences
        try:
            seconds += self._dense_s[tokens] + self._rows_s[rows] + self._slower_s[new]
        except IndexError:
            self._reach(tokens, rows, sequences)
            return self.mixed(sequences, context, chunks)
        return seconds + self._factor * attention_s

    # ---- the tables

    def _compile(self, reach: tuple[int, int, int], inputs: tuple[object, ...]) -> None:
        """Let the tables reach this far: as an earlier run has left them on disk, or anew."""
        name = tables.name_of(inputs, reach)
        found = tables.read(name)
        if found is None or len(found) != _TABLES:
            self._reach(*reach)
            made = (self._dense_s, self._slower_s, self._rows_s, self._beside_s, self._straight[1:])
            tables.write(name, [np.array(each, dtype=np.float64).ravel() for each in made])
            return
        self._dense_s, self._slower_s, self._rows_s, self._beside_s = (each.tolist() for each in found[:4])
        self._straight += [(bases, slopes) for bases, slopes in found[4].reshape(-1, 2, PIECES).tolist()]
        self._pieces += [[None] * PIECES for _ in self._straight[1:]]

    def _reach(self, tokens: int, rows: int, sequences: int) -> None:
        """Let the tables reach this far.

        ``_dense_s`` is what all layers take but for attention, by tokens; ``_slower_s`` what the prefill
        factor adds to that, by prefill tokens; ``_rows_s`` LM head and host, by rows; ``_straight`` bases
        and slopes of decode-only steps, by sequences, from which ``_pieces`` are put together on first use;
        ``_beside_s`` what in such steps is not attention, with the host's time by rows.
        """
        tables.extend(self._dense_s, tokens, lambda counts: self._dense(counts).tolist())
        tables.extend(self._slower_s, len(self._dense_s) - 1, self._slower)
        tables.extend(self._rows_s, rows, self._rows)
        tables.extend(self._straight, sequences, self._straight_pieces)

    def _straight_pieces(self, counts: FloatArray) -> list[tuple[list[float], list[float]]]:
        """Return (bases, slopes) of decode-only steps for these numbers of sequences."""
        most, queries, rows = int(counts[-1]), self._queries, self._sampled
        self._reach(most * queries, most * rows, 0)
        beside_s = [self._dense_s[count * queries] + self._rows_s[count * rows] for count in map(int, counts)]
        self._beside_s += beside_s
        self._pieces += [[None] * PIECES for _ in beside_s]
        bases, slopes = straight_pieces(self._decode_attention, counts, beside_s)
        return list(zip(bases, slopes, strict=True))

    def _piece(self, sequences: int, place: int) -> Piece:
        """Return a piece of decode-only steps, and keep it."""
        bases, slopes = self._straight[sequences]
        piece = bases[place], slopes[place], limit(sequences, place)
        self._pieces[sequences][place] = piece
        return piece

    def _slower(self, counts: FloatArray) -> list[float]:
        """Return what the prefill factor adds to the layers for these numbers of prefill tokens."""
        alone_s = np.array(self._dense_s[int(counts[0]) : int(counts[-1]) + 1]) - self._dense_s[1]
        return list(((self._factor - 1) * alone_s).tolist())

    def _rows(self, counts: FloatArray) -> list[float]:
        """Return the time of the LM head and of the host for these numbers of rows."""
        seconds = self._layer.head_seconds(counts) + self._step_s + self._sequence_s * counts
        return list(seconds.tolist())

    def _dense(self, tokens: FloatArray) -> FloatArray:
        """Return the time of all layers but their attention at ``tokens`` tokens."""
        return self._layers * self._layer.seconds(self._graphs.padded_array(tokens))

    def _decode_attention(self, sequences: FloatArray, length: FloatArray) -> FloatArray:
        """Return the time of all layers' attention for sequences of a mean KV length."""
        heads, kv_heads, head_dim = self._shape
        shape = (heads * self._queries, kv_heads, head_dim)
        read = length + (self._queries - 1)
        return self._layers * self.kernels.decode.seconds(self._gpu, sequences, *shape, read)

    # ---- what a step consists of

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
        """Return the operations of a step: those of the layers, the LM head, and the engine's terms."""
        new = sum(tokens for tokens, _ in chunks)
        tokens, rows = sequences * self._queries + new, sequences * self._sampled + len(chunks)
        self._reach(tokens, rows, sequences)
        operations, launch_s = self._operations, self._chunks.launch_s
        found = [*operations.dense(self._graphs.padded(tokens))]
        if sequences:
            read = context + (self._queries - 1) * sequences
            spent_s = self._attention_s(sequences, context)
            found.append(operations.decode_attention(read, self._queries, spent_s))
            launch_s = self._further_launch_s
        if chunks:
            found.append(operations.prefill_attention(chunks, launch_s + self._chunks.seconds(chunks)[1]))
        found.append(operations.head(rows))
        host = {"host_step": self._step_s, "host_sequences": self._sequence_s * rows}
        if chunks:
            attention_s = (self._factor - 1) * self._chunks.seconds(chunks)[1]
            host["prefill_factor"] = self._slower_s[new] + attention_s
        return found + [Operation(name, 0.0, 0.0, spent, "host") for name, spent in host.items() if spent]

    def _attention_s(self, sequences: int, context: int) -> float:
        """Return what attention takes of a decode-only step."""
        base_s, slope_s, _ = self.decode(sequences, context)
        return base_s + slope_s * context - self._beside_s[sequences]
