"""A recording made to fit a format that cannot hold all of it, and a sentence on each thing that changes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from servesim.check import ConfigError, Problem
from servesim.words import listed
from servesim.workload.formats.recording import Blocks, Recording
from servesim.workload.formats.resized import merged, split, unshared
from servesim.workload.formats.rows import seconds
from servesim.workload.formats.turns import blocks_of_turns, whole, with_whole_prompts

#: Tokens of blocks that are made for conversations, where a format takes any.
_ANY_BLOCKS = 16


@dataclass(frozen=True)
class Room:
    """What a format can hold.

    Times are multiples of ``step_ns``; they are dates, or count from the first request. ``no_times`` are
    allowed or not. Blocks of any size have room where ``any_blocks``, or else those of ``block_tokens``;
    where there must be some, ``made_blocks`` is the size of those that are made up. ``odd_blocks`` says how
    blocks that cannot become those of ``block_tokens`` are read; without it they are refused. ``turns`` of
    sessions wait for answers, or each request has a time of its own.
    """

    step_ns: int = 1
    dates: bool = False
    no_times: bool = False
    any_blocks: bool = False
    block_tokens: int | None = None
    made_blocks: int | None = None
    odd_blocks: str | None = None
    least_output: int = 0
    turns: bool = False
    remarks: tuple[str, ...] = ()


def fitted(recording: Recording, room: Room) -> tuple[Recording, list[str]]:
    """Return what a format holds of a recording, sorted by time, and what has been changed.

    Raises ConfigError where the blocks are of a size that cannot become the format's.
    """
    changes = [f"left out, {why}: {count:,}" for why, count in recording.left_out]
    if recording.unread:
        changes.append(f"not carried over: {listed(recording.unread, 'and')}")
    if recording.dialogue is not None and not room.turns:
        recording, told = _told_apart(recording, room)
        changes += told
    for step in (_sorted, _shifted, _rounded, _with_outputs, _with_blocks):
        recording, change = step(recording, room)
        changes += [change] if change else []
    return recording, [*changes, *room.remarks]


def _told_apart(recording: Recording, room: Room) -> tuple[Recording, list[str]]:
    """Return requests that wait for nothing, each with all of its prompt."""
    changes = ["not carried over: sessions and delays, so that no request waits for an answer"]
    assert recording.dialogue is not None
    if undated := int(np.count_nonzero(~(recording.dialogue.dated | recording.dialogue.opens))):
        changes.append(f"turns without a time of their own, sent as if answers took none: {undated:,}")
    if whole(recording):
        return recording._replace(dialogue=None).by_time(), changes
    told = with_whole_prompts(recording)
    more = int(told.input_tokens.sum() - recording.input_tokens.sum())
    changes.append(f"prompts of later turns: written with all that was said before, {more:,} tokens more")
    if recording.blocks is not None:
        changes.append("blocks of the first prompts of sessions, and so what sessions share, are not kept")
    size = room.block_tokens or (_ANY_BLOCKS if room.any_blocks else 0)
    made = blocks_of_turns(recording.dialogue.session, told.input_tokens, size) if size else None
    return told._replace(blocks=made, dialogue=None).by_time(), changes


def _sorted(recording: Recording, room: Room) -> tuple[Recording, str]:
    if recording.dialogue is not None:
        return recording.by_session(), ""
    late = int(np.count_nonzero(np.diff(recording.time_ns) < 0))
    if not late:
        return recording, ""
    return recording.by_time(), f"rows out of order, sorted by time: {late:,}"


def _shifted(recording: Recording, room: Room) -> tuple[Recording, str]:
    if not recording.timed:
        return recording, "" if room.no_times else "there are no times, so every request is at 0"
    first_ns = int(recording.time_ns[0])
    if room.dates or not first_ns:
        return recording, ""
    change = f"times count from the first request, which was recorded at {seconds(first_ns)} s"
    return recording._replace(time_ns=recording.time_ns - first_ns), change


def _rounded(recording: Recording, room: Room) -> tuple[Recording, str]:
    time_ns, step_ns = recording.time_ns, room.step_ns
    dialogue = recording.dialogue
    told = True if dialogue is None else dialogue.dated | dialogue.opens
    odd = int(np.count_nonzero((time_ns % step_ns > 0) & told))
    if not odd:
        return recording, ""
    rounded = (time_ns + step_ns // 2) // step_ns * step_ns
    change = f"times rounded to multiples of {seconds(step_ns)} s: {odd:,}"
    return recording._replace(time_ns=rounded), change


def _with_outputs(recording: Recording, room: Room) -> tuple[Recording, str]:
    outputs = np.maximum(recording.output_tokens, room.least_output)
    low = int(np.count_nonzero(outputs > recording.output_tokens))
    change = f"requests of 0 output tokens, which would mean that they failed, written as 1: {low:,}"
    return recording._replace(output_tokens=outputs), change if low else ""


def _with_blocks(recording: Recording, room: Room) -> tuple[Recording, str]:
    known, wanted, made = recording.blocks, room.block_tokens, room.made_blocks
    if known is None:
        if made is None or recording.dialogue is not None:
            return recording, ""
        change = f"blocks of {made} tokens are made up, and no two prompts share any"
        return recording._replace(blocks=unshared(recording.input_tokens, made)), change
    if room.any_blocks or wanted == known.tokens:
        return recording, ""
    if wanted is None:
        change = f"blocks of the prompts, and so what they share: {len(known.ids):,} not kept"
        return recording._replace(blocks=None), change
    return _resized(recording, known, wanted, room.odd_blocks)


def _resized(
    recording: Recording, known: Blocks, wanted: int, otherwise: str | None
) -> tuple[Recording, str]:
    """Return the recording with blocks of another size, and what that changes."""
    if known.tokens % wanted == 0:
        change = f"blocks of {known.tokens} tokens split into those of {wanted}: the same tokens are shared"
        return recording._replace(blocks=split(known, wanted, recording.input_tokens)), change
    if wanted % known.tokens == 0:
        change = f"blocks of {known.tokens} tokens put together to {wanted}: what is shared ends at those"
        return recording._replace(blocks=merged(known, wanted)), change
    if otherwise is not None:
        return recording, otherwise.format(known.tokens)
    message = f"has blocks of {wanted} tokens, and those of the trace, of {known.tokens}, do not fill them"
    raise ConfigError([Problem("--to", None, message)])
