"""What a step of speculative decoding takes: the model's verification, and the draft's passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from servesim.cost.coverage import Spent, Steps
from servesim.cost.fitted import FittedStepTime
from servesim.cost.model import Model
from servesim.cost.overhead import EngineOverhead
from servesim.cost.speculation import Speculation
from servesim.cost.step_time import Decoding, FloatArray, Operation, StepTime

Chunks = Sequence[tuple[int, int]]
Work = tuple[FloatArray, FloatArray]


def speculative_step_time(
    times: Callable[..., StepTime], speculation: Speculation, target: Model, overhead: EngineOverhead | None
) -> SpeculativeStepTime:
    """Return the step times of a model that decodes speculatively.

    The engine's terms count once in a step: the passes of the draft are kernels alone.

    Args:
        times: the step times of a model (by position), with an ``overhead`` and with so much in ``each``
            decode; neither: without overhead, and one token.
        speculation: what drafts, and how many tokens.
        target: the model that is served.
        overhead: what the engine adds to a step.
    """
    queries, model, draft = speculation.queries, speculation.draft(target), None
    if model is not None:
        draft = Draft(times(model, each=Decoding(queries, 1)), times(model), queries - 1)
    each = Decoding(queries, queries)
    return SpeculativeStepTime(times(target, overhead=overhead, each=each), draft, each)


class Draft:
    """The passes of a draft model in one step (vLLM, vllm/v1/spec_decode/eagle.py).

    ``first`` takes the tokens that the target has just verified, and the prefill chunks beside them, and
    samples one token per sequence; ``further`` take that token, and each of them samples the next one.

    Args:
        first: step times with as many queries as the target verifies, one of them sampled.
        further: step times of plain decodes.
        drafted: tokens that are drafted per sequence, one pass each.
    """

    def __init__(self, first: StepTime, further: StepTime, drafted: int) -> None:
        self.first, self.further, self.again = first, further, drafted - 1

    def decode(self, sequences: int, context: float) -> tuple[float, float, float]:
        """Return (base_s, slope_s, limit) of its passes in a decode-only step."""
        base_s, slope_s, limit = self.first.decode(sequences, context)
        if not self.again:
            return base_s, slope_s, limit
        more_s, more_slope_s, sooner = self.further.decode(sequences, context)
        again = self.again
        return base_s + again * more_s, slope_s + again * more_slope_s, min(limit, sooner)

    def mixed(self, sequences: int, context: float, chunks: Chunks) -> float:
        """Return the time of its passes in a step with chunks; their sequences are drafted for, too."""
        seconds = self.first.mixed(sequences, context, chunks)
        if self.again:
            read = context + sum(new + cached for new, cached in chunks)
            seconds += self.again * self.further.mixed(sequences + len(chunks), read, ())
        return seconds

    def work(self, steps: FloatArray, sequences: FloatArray, first: dict[str, FloatArray]) -> Work:
        """Return (FLOPs, HBM bytes) of its passes; ``first`` is what the first of them takes in."""
        flops, hbm_bytes = self.first.work(**first)
        if not self.again:
            return flops, hbm_bytes
        read = first["context"]
        more = self.further.work(steps=steps, tokens=sequences, rows=sequences, pairs=read, context=read)
        return flops + self.again * more[0], hbm_bytes + self.again * more[1]

    def breakdown(self, sequences: int, context: int, chunks: Chunks) -> Iterator[Operation]:
        """Yield the operations of all its passes, those of one kind together."""
        read = context + sum(new + cached for new, cached in chunks)
        found: dict[str, Operation] = {}
        for often, operations in (
            (1, self.first.breakdown(sequences, context, chunks)),
            (self.again, self.further.breakdown(sequences + len(chunks), read, ()) if self.again else ()),
        ):
            for each in operations:
                known = found.get(each.name, each._replace(flops=0.0, bytes=0.0, seconds=0.0))
                found[each.name] = known._replace(
                    flops=known.flops + often * each.flops,
                    bytes=known.bytes + often * each.bytes,
                    seconds=known.seconds + often * each.seconds,
                )
        yield from (each._replace(name=f"draft_{name}") for name, each in found.items())


class SpeculativeStepTime:
    """Step times of one replica that decodes speculatively (see :class:`StepTime`).

    The target computes ``each.queries`` tokens of every decoding sequence in one pass that reads its weights
    and the sequence's KV once; whatever drafts them runs before or after it, not beside it. Never decreasing
    in the length of the draft.

    Args:
        target: step times with so many queries per decode.
        draft: the passes of the model that drafts; None where none does.
        each: what a decode puts into the target.
    """

    def __init__(self, target: StepTime, draft: Draft | None, each: Decoding) -> None:
        self.target, self.draft, self.each = target, draft, each

    def decode(self, sequences: int, context: float) -> tuple[float, float, float]:
        """Return (base_s, slope_s, limit) of a decode-only step."""
        verified = self.target.decode(sequences, context)
        if self.draft is None:
            return verified
        drafted = self.draft.decode(sequences, context)
        return verified[0] + drafted[0], verified[1] + drafted[1], min(verified[2], drafted[2])

    def mixed(self, sequences: int, context: float, chunks: Chunks) -> float:
        """Return the time of a step of decodes and prefill chunks, which the draft computes as well."""
        seconds = self.target.mixed(sequences, context, chunks)
        return seconds if self.draft is None else seconds + self.draft.mixed(sequences, context, chunks)

    def work(
        self,
        *,
        steps: NDArray[np.generic],
        tokens: NDArray[np.generic],
        rows: NDArray[np.generic],
        pairs: NDArray[np.generic],
        context: NDArray[np.generic],
        decodes: NDArray[np.generic] | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Return (FLOPs, HBM bytes) of runs of equal steps, the draft's included.

        ``tokens`` and ``rows`` are those of plain decoding, ``decodes`` the decoding sequences among them,
        summed over the steps (none if not given); ``pairs`` and ``context`` are those of all queries.
        """
        decodes = np.zeros_like(steps) if decodes is None else decodes
        count, plain, sampled, scores, read, decoding = (
            np.asarray(values, dtype=np.float64) for values in (steps, tokens, rows, pairs, context, decodes)
        )
        further = (self.each.queries - 1) * decoding
        first = {"steps": count, "tokens": plain + further, "pairs": scores, "context": read}
        flops, hbm_bytes = self.target.work(**first, rows=sampled + further)
        if self.draft is None:
            return flops, hbm_bytes
        more = self.draft.work(count, sampled, {**first, "rows": sampled})
        return flops + more[0], hbm_bytes + more[1]

    def breakdown(self, sequences: int, context: int, chunks: Chunks) -> list[Operation]:
        """Return the operations of the target, and behind them those of the draft."""
        found = self.target.breakdown(sequences, context, chunks)
        return found if self.draft is None else [*found, *self.draft.breakdown(sequences, context, chunks)]

    def spent(self, steps: Steps) -> dict[str, Spent]:
        """Return what the steps spent in each operation by how it is calibrated; nothing by datasheet.

        The draft's passes are put together from measured kernels: all of them count as between.
        """
        if not isinstance(self.target, FittedStepTime):
            return {}
        if self.draft is None:
            return self.target.coverage.spent(steps)
        drafted_s = np.minimum(self._drafted(steps), steps.seconds)
        spent = self.target.coverage.spent(steps._replace(seconds=steps.seconds - drafted_s))
        return {**spent, "draft": Spent(0.0, float(drafted_s.sum()), 0.0)}

    def _drafted(self, steps: Steps) -> FloatArray:
        """Return the time of the draft in runs of steps: at their first context, with chunks of one size."""
        assert self.draft is not None
        found = np.zeros_like(steps.seconds)
        columns = zip(*(column.tolist() for column in steps[1:]), strict=True)
        for place, (count, sequences, decodes, new, read) in enumerate(columns):
            decoding = int(decodes if new else sequences)
            chunks = _equal(int(sequences) - decoding, int(new), int(read))
            beside = int(read) - sum(map(sum, chunks))
            found[place] = count * self.draft.mixed(decoding, max(beside, decoding), chunks)
        return found


def _equal(chunks: int, new: int, read: int) -> list[tuple[int, int]]:
    """Return so many chunks of new tokens, none of them cached."""
    return [(max(new // chunks, 1), 0)] * chunks if chunks else []
