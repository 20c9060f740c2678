"""Settings of a trace: which do not go together, which its file has nothing for, and what they come to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from servesim.check import MOST_S, Problem
from servesim.words import listed
from servesim.workload.formats import Recording

if TYPE_CHECKING:
    from servesim.workload.trace import Trace

#: Formats whose lines tools extend by keys that change what is sent.
_EXTENDED = ("mooncake", "vllm_timed")


def at_odds(trace: Trace) -> Iterator[Problem]:
    """Yield the settings that do not go together, whatever is in the file."""
    if trace.at_once:
        for name, unset in (("rate_rps", None), ("rate_scale", 1.0)):
            if (value := getattr(trace, name)) != unset:
                yield Problem(name, value, "does not go with at_once, which sends all at 0")
    if trace.rate_rps is not None and trace.duration_s is not None:
        message = "does not go with rate_rps, whose times are drawn; set requests instead"
        yield Problem("duration_s", trace.duration_s, message)


def without_times(trace: Trace) -> Iterator[Problem]:
    """Yield the settings that nothing of a file without times can follow."""
    if trace.rate_scale != 1 and trace.rate_rps is None and not trace.at_once:
        message = "has no rate to multiply: the file has no times, so all is sent at once; set rate_rps"
        yield Problem("rate_scale", trace.rate_scale, message)
    if trace.end_s is not None:
        message = "cannot end a window: the file has no times; set requests instead"
        yield Problem("end_s", trace.end_s, message)


def without_turns(trace: Trace, recording: Recording) -> Iterator[Problem]:
    """Yield the settings of turns that the file has nothing for."""
    dialogue = recording.dialogue
    if dialogue is None and trace.turn_inputs != "auto":
        yield Problem("turn_inputs", trace.turn_inputs, "is for traces that tell the turns of sessions")
    undated = 0 if dialogue is None else int(np.count_nonzero(~dialogue.dated))
    if undated and recording.timed and not trace.follow_turns:
        message = f"goes with times in all rows, and {undated:,} have none: they wait for an answer"
        yield Problem("follow_turns", False, message)


def too_late(trace: Trace) -> Iterator[Problem]:
    """Yield what makes turns wait for longer than a clock shows: the pace of the file, or its delays."""
    if (sessions := trace.recorded) is None or (latest_s := sessions.latest_s) <= MOST_S:
        return
    bound = f"the trace to {latest_s:g} s, and it may last {MOST_S:g} s"
    if sessions.begins_s[-1] + sessions.offsets_s.max() > MOST_S:
        yield Problem("rate_scale", trace.rate_scale, f"stretches {bound}")
    else:
        yield Problem("path", trace.path, f"has delays that stretch {bound}")


def remarks(trace: Trace, recording: Recording) -> tuple[str, ...]:
    """Return how the file was read, keys that nothing is made of, and what became of its times."""
    extended = recording.format in _EXTENDED and recording.unread
    unread = [f"not read: {listed(recording.unread, 'and')}"] if extended else []
    return (*recording.remarks, *unread, *_on_times(trace, recording.timed))


def _on_times(trace: Trace, recorded: bool) -> Iterator[str]:
    """Yield what became of the times of the file."""
    if trace.rate_rps is not None:
        rate = trace.rate_rps * trace.rate_scale
        why = "recorded times left aside" if recorded else "no times in the file"
        yield f"{why}: Poisson at {rate:g}/s"
    elif not recorded:
        yield "no times in the file, so all is sent at once; workload.rate_rps sends at a rate"
