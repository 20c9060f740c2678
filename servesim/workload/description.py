"""What a recording is like: how much comes when, how long the requests are, and what prompts share."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np

from servesim.workload.batch import FloatArray, IntArray
from servesim.workload.formats import Blocks, Recording
from servesim.workload.formats.turns import whole, with_whole_prompts

#: Shares of the requests whose lengths are told.
SHARES = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)

#: Widths of a bin of time (seconds) that a reader knows from a clock.
_WIDTHS_S = (
    *(step * 10.0**power for power in range(-6, 0) for step in (1, 2, 5)),
    *(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200),
)
_DAY_S = 86_400
#: Bins of time, at most, and requests of a bin on average, at least.
MOST_BINS, ENOUGH = 120, 4


@dataclass(frozen=True)
class Lengths:
    """How long prompts or outputs are, in tokens."""

    tokens: IntArray

    @property
    def total(self) -> int:
        """Return the tokens of all requests."""
        return int(self.tokens.sum())

    @property
    def mean(self) -> float:
        """Return the mean."""
        return float(self.tokens.mean())

    @property
    def quantiles(self) -> dict[float, float]:
        """Return the length at each of ``SHARES``, by linear interpolation."""
        return dict(zip(SHARES, np.quantile(self.tokens, SHARES).tolist(), strict=True))

    @property
    def ends(self) -> tuple[int, int]:
        """Return the shortest and the longest."""
        return int(self.tokens.min()), int(self.tokens.max())


@dataclass(frozen=True)
class Reuse:
    """What prompts share, if every block that was seen once stays in a cache for ever.

    A block is found when it and all before it in its prompt were in an earlier prompt; ``tokens`` counts
    those of found blocks.
    """

    found: IntArray
    blocks: IntArray
    tokens: IntArray
    block_tokens: int

    @property
    def share(self) -> float:
        """Return the share of all blocks that are found."""
        return float(self.found.sum() / max(self.blocks.sum(), 1))


@dataclass(frozen=True)
class Talks:
    """The sessions of a recording: their turns, the pauses before later ones, and what these bring.

    ``new_inputs`` are prompts as they are in the file, where they hold only what is new in each turn.
    """

    turns: IntArray
    pauses_s: FloatArray
    new_inputs: Lengths | None

    @property
    def sessions(self) -> int:
        """Return the number of sessions, those of one request among them."""
        return len(self.turns)


class Description:
    """A recording sorted by time, and what it is like.

    ``talks`` tells of sessions, where there are any. Where later turns have no times of their own, what is
    told of times is that of the sessions (``of_sessions``): those of their first requests. ``inputs`` are
    whole prompts, with all that was said before.
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording.by_time()
        self.talks = _talks(recording)
        dialogue = recording.dialogue
        self.of_sessions = dialogue is not None and not (dialogue.dated | dialogue.opens).all()
        told_ns = recording.time_ns
        if dialogue is not None and self.of_sessions:
            told_ns = told_ns[dialogue.opens]
        self.times_ns = np.sort(told_ns)
        self.out_of_order = 0 if dialogue is not None else int(np.count_nonzero(np.diff(told_ns) < 0))
        news = self.talks is not None and self.talks.new_inputs is not None
        self.inputs = Lengths((with_whole_prompts(recording) if news else recording).input_tokens)
        self.outputs = Lengths(recording.output_tokens)
        self.reuse = _reuse(self.recording)

    @property
    def elapsed_s(self) -> FloatArray:
        """Return the seconds from the first request, or session, to each."""
        times = self.times_ns
        elapsed_s: FloatArray = (times - times[0]) / 1e9
        return elapsed_s

    @property
    def span_s(self) -> float:
        """Return the seconds from the first request to the last."""
        return float(self.elapsed_s[-1])

    @property
    def rate_rps(self) -> float | None:
        """Return requests per second: gaps over the time that they take; None where they take none."""
        return (len(self.times_ns) - 1) / self.span_s if self.span_s else None

    @property
    def same_time(self) -> int:
        """Return the requests that come at the very time of the one before them."""
        return int(np.count_nonzero(np.diff(self.times_ns) == 0))

    @property
    def gap_scv(self) -> float | None:
        """Return the squared coefficient of variation of the gaps: 0 a metronome, 1 Poisson, above bursty.

        None where there are fewer than two gaps, or all of them are 0.
        """
        gaps = np.diff(self.elapsed_s)
        return float(gaps.var() / gaps.mean() ** 2) if len(gaps) > 1 and self.span_s else None

    @property
    def bin_s(self) -> float:
        """Return the width of a bin of time (seconds), the whole span where there is but one.

        There are ``MOST_BINS`` at most, with ``ENOUGH`` requests on average.
        """
        least = self.span_s / min(MOST_BINS, max(len(self.times_ns) // ENOUGH, 1))
        days = float(ceil(least / _DAY_S) * _DAY_S)
        width = next((float(width) for width in _WIDTHS_S if width >= least), days)
        return min(width, self.span_s) or width

    @property
    def edges_s(self) -> FloatArray:
        """Return where the bins begin, and where the last one ends: with the last request.

        It takes what is left over, so that it is one to two widths long.
        """
        width = self.bin_s
        edges = np.arange(self._bins + 1, dtype=np.float64) * width
        edges[-1] = self.span_s or width
        return edges

    def per_bin(self, amounts: IntArray | None = None) -> FloatArray:
        """Return the number of requests that come in each bin of time, or the sum of their amounts.

        A request that comes where two bins meet is in the earlier one.
        """
        times_ns = self.times_ns - self.times_ns[0]
        place = ((times_ns - 1) // round(self.bin_s * 1e9)).clip(0, self._bins - 1)
        found: FloatArray = np.bincount(place, weights=amounts, minlength=self._bins).astype(np.float64)
        return found

    @property
    def rates_rps(self) -> FloatArray:
        """Return requests per second in each bin of time, as :attr:`rate_rps` counts them: by gaps that end.

        Their mean, weighted with the lengths of the bins, is that rate.
        """
        counts = self.per_bin()
        counts[0] -= 1  # no gap ends with the first request
        return counts / np.diff(self.edges_s)

    @property
    def peak_rps(self) -> float:
        """Return the rate (requests per second) in the bin of time in which most come."""
        return float(self.rates_rps.max())

    @property
    def _bins(self) -> int:
        """Return the number of bins, each of the width or, the last one, longer."""
        span_ns = int(self.times_ns[-1] - self.times_ns[0])
        return max(span_ns // round(self.bin_s * 1e9), 1)


def _talks(recording: Recording) -> Talks | None:
    """Return what the sessions of a recording are like; None where no request has an answer to wait for."""
    dialogue = recording.dialogue
    if dialogue is None or dialogue.opens.all():
        return None
    pauses_s: FloatArray = dialogue.pause_ns[~dialogue.opens] / 1e9
    turns = np.unique(dialogue.session, return_counts=True)[1]
    return Talks(turns, pauses_s, None if whole(recording) else Lengths(recording.input_tokens))


def _reuse(recording: Recording) -> Reuse | None:
    """Return what the prompts share, in the order of the recording."""
    if recording.blocks is None:
        return None
    blocks: Blocks = recording.blocks
    new = np.zeros(len(blocks.ids), dtype=bool)
    new[np.unique(blocks.ids, return_index=True)[1]] = True
    found = _leading(~new, blocks.starts)
    tokens = np.minimum(found * blocks.tokens, recording.input_tokens)
    return Reuse(found, blocks.counts, tokens, blocks.tokens)


def _leading(flags: np.ndarray, starts: IntArray) -> IntArray:
    """Return how many flags are set in a row at the beginning of each stretch."""
    ends = np.flatnonzero(np.append(~flags, True))
    first_unset = ends[np.searchsorted(ends, starts[:-1])]
    return np.minimum(first_unset, starts[1:]) - starts[:-1]
