"""Recordings for hypothesis: any times and lengths, with blocks or without, sorted or not."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

from servesim.workload.formats import Blocks, Recording

#: Milliseconds of a week.
WEEK_MS = 7 * 86_400_000


@st.composite
def recordings(
    draw: st.DrawFn,
    *,
    step_ns: int = 1_000_000,
    least_input: int = 1,
    least_output: int = 0,
    block_tokens: int = 512,
) -> Recording:
    """Draw a recording of 1 to 20 requests, whose times are multiples of a step."""
    size = draw(st.integers(1, 20))
    times = st.integers(0, WEEK_MS * 1_000_000 // step_ns)
    inputs = draw(st.lists(st.integers(least_input, 3000), min_size=size, max_size=size))
    counts = [-(-tokens // block_tokens) for tokens in inputs]
    ids = [draw(st.lists(st.integers(0, 5), min_size=count, max_size=count)) for count in counts]
    return Recording(
        time_ns=np.array(draw(st.lists(times, min_size=size, max_size=size)), dtype=np.int64) * step_ns,
        input_tokens=np.array(inputs, dtype=np.int64),
        output_tokens=np.array(
            draw(st.lists(st.integers(least_output, 500), min_size=size, max_size=size)), dtype=np.int64
        ),
        format="made",
        blocks=blocks_of(ids, block_tokens),
    )


def blocks_of(ids: list[list[int]], tokens: int) -> Blocks:
    """Return blocks with these ids."""
    starts = np.cumsum([0, *map(len, ids)])
    return Blocks(np.array([one for each in ids for one in each], dtype=np.uint64), starts, tokens)


def listed(blocks: Blocks) -> list[list[int]]:
    """Return the ids of each prompt."""
    return [blocks.ids[start:stop].tolist() for start, stop in pairwise(blocks.starts.tolist())]
