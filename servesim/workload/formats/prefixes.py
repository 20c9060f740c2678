"""What prompts share, as spans: from the blocks of a recording to the chains that a cache compares."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from servesim.workload.batch import BoolArray, IntArray
from servesim.workload.formats.recording import Blocks
from servesim.workload.formats.resized import merged


class Spans(NamedTuple):
    """The shared beginnings of prompts: prompt i has the spans from ``starts[i]`` up to ``starts[i + 1]``.

    ``keys`` name them and ``ends`` are tokens of the prompt, as :class:`~servesim.workload.origin.Origin` has
    it. A span is as long as possible: it ends where prompts that are alike so far go different ways.
    """

    keys: IntArray
    ends: IntArray
    starts: IntArray

    def of(self, first: int, stop: int) -> Iterator[tuple[tuple[int, int], ...]]:
        """Yield the spans of some prompts in turn."""
        starts = self.starts[first : stop + 1].tolist()
        low, high = starts[0], starts[-1]
        pairs = list(zip(self.keys[low:high].tolist(), self.ends[low:high].tolist(), strict=True))
        for start, end in pairwise(starts):
            yield tuple(pairs[start - low : end - low])


def shared_spans(blocks: Blocks, input_tokens: IntArray) -> Spans:
    """Return what each prompt has in common with another one, from its beginning on.

    What only one prompt has is left out, and what lies beyond its tokens.
    """
    blocks = chained(blocks)
    codes = np.unique(blocks.ids, return_inverse=True)[1]
    counts = blocks.counts
    place = np.arange(len(codes)) - np.repeat(blocks.starts[:-1], counts)
    lengths = np.repeat(input_tokens, counts)
    prompt = np.repeat(np.arange(len(counts)), counts)
    kept = place * blocks.tokens < lengths
    kept &= np.bincount(codes[kept], minlength=len(codes))[codes] > 1
    head = kept & ~_goes_on(codes, place, kept)
    last = kept & ~np.append(kept[1:] & ~head[1:] & (place[1:] > 0), False)
    ends = np.minimum((place + 1) * blocks.tokens, lengths)[last]
    sizes = np.bincount(prompt[head], minlength=len(counts))
    return Spans(codes[head], ends, np.concatenate([[0], np.cumsum(sizes)]))


def _goes_on(codes: IntArray, place: IntArray, kept: BoolArray) -> BoolArray:
    """Tell which kept blocks belong to the span of the block before them: all prompts go on with them."""
    follows = kept & (place > 0)
    before = np.roll(codes, 1)
    pairs = np.unique(np.stack([before[follows], codes[follows]]), axis=1)
    ways = np.bincount(pairs[0], minlength=len(codes) or 1)
    goes_on: BoolArray = follows & (ways[before] == 1)
    return goes_on


def chained(blocks: Blocks) -> Blocks:
    """Return blocks whose ids stand for all before them, too: those given, where theirs do.

    Formats say so of their ids, but not every file keeps to it. Where an id follows different ones, new ids
    are given out, so that prompts which have but their last block in common share nothing.
    """
    if not len(blocks.ids):
        return blocks
    _, first, codes = np.unique(blocks.ids, return_index=True, return_inverse=True)
    before = np.roll(codes, 1)
    begins = np.zeros(len(codes), dtype=bool)
    begins[blocks.starts[:-1][blocks.counts > 0]] = True
    before[begins] = -1
    return blocks if np.array_equal(before, before[first][codes]) else merged(blocks, blocks.tokens)
