"""Turns of conversations: whether their prompts are whole, how long whole ones are, and their blocks."""

from __future__ import annotations

import numpy as np

from servesim.workload.batch import BoolArray, IntArray
from servesim.workload.formats.recording import Blocks, Recording

#: Share of the later turns from which on they say how all are.
_MOSTLY = 0.5


def whole(recording: Recording) -> bool:
    """Tell whether later prompts hold all that was said before, as those of Mooncake and of Dynamo do.

    They do where most of those with blocks begin with the first block of their session. Without blocks they
    are taken for what is new in each, as AIPerf has it. Where no request is a turn of a session, all are.
    """
    blocks, dialogue = recording.blocks, recording.dialogue
    if dialogue is None:
        return True
    if blocks is None:
        return False
    first, opens = dialogue.first, dialogue.opens
    later: BoolArray = ~opens & (blocks.counts > 0)
    both = later & (blocks.counts[first] > 0)
    alike = blocks.ids[blocks.starts[:-1][both]] == blocks.ids[blocks.starts[:-1][first[both]]]
    return bool(later.any() and alike.sum() >= _MOSTLY * later.sum())


def with_whole_prompts(recording: Recording) -> Recording:
    """Return a recording whose prompts, of what is new in each turn, hold all that was said before, too.

    A prompt is all inputs and answers of its session so far, and its own input. Blocks of what is new are
    none of whole prompts, so none are left.
    """
    assert recording.dialogue is not None
    rows = np.argsort(recording.dialogue.session, kind="stable")
    inputs, outputs = recording.input_tokens[rows], recording.output_tokens[rows]
    said = np.cumsum(inputs + outputs)
    opening = np.flatnonzero(recording.dialogue.opens[rows])
    before = np.concatenate([[0], said])[opening]
    sizes = np.diff(np.append(opening, len(rows)))
    prompts = np.empty_like(inputs)
    prompts[rows] = said - outputs - np.repeat(before, sizes)
    return recording._replace(input_tokens=prompts, blocks=None)


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
