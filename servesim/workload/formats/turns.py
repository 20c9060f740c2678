"""The blocks of conversations of which only the lengths are known."""

from __future__ import annotations

import numpy as np

from servesim.workload.batch import IntArray
from servesim.workload.formats.recording import Blocks


def blocks_of_turns(session: IntArray, input_tokens: IntArray, tokens: int, common_tokens: int = 0) -> Blocks:
    """Return blocks of so many tokens for prompts each of which goes on where its session's last one ended.

    Block j of a session is the same in all its prompts that fill it; those of the first ``common_tokens`` are
    the same in all sessions. A prompt's last block, where it is partial, is like no other.

    Args:
        session: the session of each prompt; any number that no other has, of one that belongs to none.
        input_tokens: the length of each prompt.
        tokens: tokens of a block.
        common_tokens: length of what all prompts begin with.
    """
    full, partial = input_tokens // tokens, input_tokens % tokens > 0
    counts = full + partial
    starts = np.concatenate([[0], np.cumsum(counts)])
    prompt = np.repeat(np.arange(len(counts)), counts)
    place = np.arange(starts[-1]) - starts[:-1][prompt]
    names, code = np.unique(session, return_inverse=True)
    longest = np.zeros(len(names), dtype=np.int64)
    np.maximum.at(longest, code, full)
    common = common_tokens // tokens
    first = common + np.concatenate([[0], np.cumsum(longest)])
    ids = np.where(place < common, place, first[code[prompt]] + place)
    last = partial[prompt] & (place == full[prompt])
    ids[last] = first[-1] + prompt[last]
    return Blocks(ids.astype(np.uint64), starts, tokens)
