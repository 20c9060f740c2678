"""Blocks of another size, and blocks of prompts that share nothing."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from servesim.workload.batch import IntArray
from servesim.workload.formats.recording import Blocks


def merged(blocks: Blocks, tokens: int) -> Blocks:
    """Return blocks of so many tokens, a multiple of those there are.

    Prompts share those of the larger blocks whose every smaller one they share, and all before them.
    """
    times = tokens // blocks.tokens
    codes: dict[tuple[int, ...], int] = {}
    ids, starts, all_ids = [], blocks.starts.tolist(), blocks.ids.tolist()
    for start, stop in pairwise(starts):
        before = -1
        for first in range(start, stop, times):
            key = (before, *all_ids[first : min(first + times, stop)])
            before = codes.setdefault(key, len(codes))
            ids.append(before)
    return Blocks(np.array(ids, dtype=np.uint64), _starts(-(-blocks.counts // times)), tokens)


def split(blocks: Blocks, tokens: int, input_tokens: IntArray) -> Blocks:
    """Return blocks of so many tokens, of which those there are hold several, for prompts of these lengths.

    Parts of the same block are the same, so prompts share the tokens that they shared. A prompt has no more
    blocks than its tokens fill.
    """
    times = blocks.tokens // tokens
    codes = np.unique(blocks.ids, return_inverse=True)[1].astype(np.uint64)
    counts = np.minimum(blocks.counts * times, -(-input_tokens // tokens))
    starts = _starts(counts)
    places = np.arange(starts[-1]) - np.repeat(starts[:-1], counts)  # of each new block in its prompt
    whole = np.repeat(blocks.starts[:-1], counts) + places // times
    return Blocks(codes[whole] * np.uint64(times) + (places % times).astype(np.uint64), starts, tokens)


def unshared(input_tokens: IntArray, tokens: int) -> Blocks:
    """Return blocks of so many tokens for prompts of these lengths, the last one partial, no two alike."""
    starts = _starts(-(-input_tokens // tokens))
    return Blocks(np.arange(starts[-1], dtype=np.uint64), starts, tokens)


def _starts(counts: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(counts)])
