"""How long an engine step takes: the interface that every fidelity of the cost model offers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Bound = Literal["compute", "memory", "link", "latency", "host"]


class Operation(NamedTuple):
    """One kind of kernel in a step, over all layers.

    ``flops`` and ``bytes`` are of all GPUs of the replica together; ``bytes`` are weights and KV from HBM,
    or for a collective what goes over the links. ``seconds`` are the replica's, whose GPUs work side by
    side. ``bound`` is what most of them are spent on.
    """

    name: str
    flops: float
    bytes: float
    seconds: float
    bound: Bound


class Decoding(NamedTuple):
    """What each decoding sequence puts into a step: ``queries`` new tokens, of which ``rows`` are sampled.

    A plain decode is one of each; a step that verifies k drafted tokens has 1 + k queries and samples all.
    The queries of a sequence read its KV once, and what the first ones do not see of the later ones is
    masked, not saved: with c tokens of context, its first query included, they read c + queries - 1 tokens
    and make as many pairs each.
    """

    queries: int = 1
    rows: int = 1


PLAIN = Decoding()


class StepTime(Protocol):
    """Step times of one replica, built once per model, GPU, parallelism and precision, then cheap.

    A *step* computes ``sequences`` decodes, one new token each, beside prefill ``chunks`` of (new tokens,
    cached tokens). ``context`` is the KV tokens that the decodes read, their new tokens included.
    Times do not decrease in tokens or context, nor in sequences of no less than the mean context.
    """

    def decode(self, sequences: int, context: float) -> tuple[float, float, float]:
        """Return (base_s, slope_s, limit) of a decode-only step.

        With c context tokens it takes base_s + slope_s x c, for every c from ``context`` to ``limit``.
        """

    def mixed(self, sequences: int, context: float, chunks: Sequence[tuple[int, int]]) -> float:
        """Return the time of a step of decodes and prefill chunks; without chunks it equals decode's."""

    def work(
        self,
        *,
        steps: NDArray[np.generic],
        tokens: NDArray[np.generic],
        rows: NDArray[np.generic],
        pairs: NDArray[np.generic],
        context: NDArray[np.generic],
    ) -> tuple[FloatArray, FloatArray]:
        """Return (FLOPs, HBM bytes) of runs of equal steps, all GPUs of the replica together.

        Each argument is an array with one entry per run, summed over the run's steps: ``tokens`` through
        the layers, ``rows`` through the LM head (one per sequence or chunk), query-key ``pairs`` of
        attention, ``context`` tokens of KV read. A chunk of q new tokens behind p cached ones has
        q p + q (q + 1) / 2 pairs and reads p + q tokens; a decode at context c has c of each.
        """

    def breakdown(self, sequences: int, context: int, chunks: Sequence[tuple[int, int]]) -> list[Operation]:
        """Return the operations of the step that :meth:`mixed` times; their seconds sum to its result."""


class GraphSizes:
    """The batch sizes (tokens per step) that CUDA graphs are captured for; steps are padded up to them.

    As vLLM V1 chooses them (vllm/config, ``cudagraph_capture_sizes``): 1, 2, 4, multiples of 8 up to 256
    and of 16 beyond, none above min(2 x ``max_num_seqs``, 512) or ``max_num_batched_tokens``. Larger
    steps run without a graph, unpadded.
    """

    def __init__(self, max_num_seqs: int, max_num_batched_tokens: int) -> None:
        largest = min(2 * max_num_seqs, 512, max_num_batched_tokens)
        sizes = (1, 2, 4, *range(8, 256, 8), *range(256, largest + 1, 16))
        self.sizes = [size for size in sizes if size <= largest]
        self._bounds = np.array(self.sizes, dtype=np.float64)

    def padded(self, tokens: int) -> int:
        """Return the tokens that a step of ``tokens`` computes."""
        index = bisect_left(self.sizes, tokens)
        return self.sizes[index] if index < len(self.sizes) else tokens

    def padded_array(self, tokens: FloatArray) -> FloatArray:
        """Return :meth:`padded` of every entry."""
        index = np.searchsorted(self._bounds, tokens)
        captured = index < len(self._bounds)
        return np.where(captured, self._bounds[np.where(captured, index, 0)], tokens)
