"""The highest rate and the highest concurrency of a run, as ``vllm bench serve`` tells them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from servesim.results.dialects.sample import Sample
from servesim.results.runs import Floats, Integers, spread

#: Leaps whose steps are laid out at once.
GROUP = 1 << 15


def max_output_tokens_per_s(sample: Sample) -> int:
    """Return the most tokens that fell into one second, seconds counted from the first send."""
    if not sample.completed:
        return 0
    start_s = float(sample.sent_s.min())
    counted = [_by_second(moments_s - start_s, tokens) for moments_s, tokens in _tokens(sample)]
    seconds, tokens = (np.concatenate(columns) for columns in zip(*counted, strict=True))
    _, place = np.unique(seconds, return_inverse=True)
    return int(np.bincount(place, tokens).max())


def max_concurrent_requests(sample: Sample) -> int:
    """Return the largest overlap of the half-open intervals from a request's sending to its last token."""
    moments_s = np.concatenate([sample.sent_s, sample.sent_s + sample.e2e_s])
    change = np.repeat(np.array([1, -1]), sample.completed)
    under_way = np.cumsum(change[np.lexsort((change, moments_s))])  # who leaves makes room for who comes
    return int(under_way.max(initial=0))


def _tokens(sample: Sample) -> Iterator[tuple[Floats, Integers]]:
    """Yield moments (s), and how many tokens left at each: first ones, those behind torn gaps, the rest."""
    times = sample.times
    torn = times.begin[~np.isnan(times.gap_s)]
    for moments_s in (sample.sent_s + sample.ttft_s, times.leaps.end_s[torn - 1]):
        yield moments_s, np.ones(len(moments_s), dtype=np.int64)
    decodes = times.decodes()
    busy = np.flatnonzero(decodes > 0)
    for begin in range(0, len(busy), GROUP):
        leap = busy[begin : begin + GROUP]
        owner, offset = spread(times.leaps.steps[leap])
        yield times.leaps.ends_s(times.leaps.first_step[leap][owner] + offset), decodes[leap][owner]


def _by_second(since_s: Floats, tokens: Integers) -> tuple[Floats, Floats]:
    """Return the seconds that hold any of the moments, and the tokens in each."""
    seconds, place = np.unique(np.floor(since_s), return_inverse=True)
    return seconds, np.bincount(place, tokens, len(seconds)).astype(np.float64)
