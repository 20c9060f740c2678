"""What is drawn for sessions: the same for each, whatever the rate is and however long it and others are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from servesim.streams import Streams
from servesim.workload.batch import BoolArray, FloatArray
from servesim.workload.turns import Turns

#: Sessions that draw from one stream, side by side: enough for numpy, few enough to keep memory flat.
CHUNK_SESSIONS = 256

#: Turns that all sessions of a chunk draw at first; then twice as many, up to those of a long session.
_FIRST_TURNS, _LONG_TURNS = 16, 512

#: What is drawn for a turn: standard normals for its input, its output, the wait before it, and a tool call.
INPUT, OUTPUT, WAIT, CALL = range(4)


class Drawn(NamedTuple):
    """What was drawn for one session: a share, which chooses its system prompt, and a row for each turn.

    ``results`` says which turns bring the result of a tool.
    """

    share: float
    normals: FloatArray
    results: BoolArray


def draw_chunk(
    streams: Streams, chunk: int, turns: Turns, call_below: float, most_turns: int
) -> Iterator[Drawn]:
    """Yield what is drawn for the sessions of a chunk, of each ``most_turns`` at the most.

    A turn brings the result of a tool where its normal for that is less than ``call_below``; the others are
    a human's, of whom each session has as many as ``turns`` says. Turn t of session i has the same normals in
    every configuration; the turns of a session that is very long come from a stream of its own in the end,
    when it is its turn.
    """
    rng = streams.stream("sessions", chunk)
    shares, lengths = rng.random((2, CHUNK_SESSIONS)).tolist()
    asked = np.array([turns.of(length) for length in lengths])
    normals = rng.standard_normal((CHUNK_SESSIONS, _FIRST_TURNS, 4))
    together = min(_LONG_TURNS, most_turns)
    while (ends := _ends(normals, asked, call_below)).min() < 0 and normals.shape[1] < together:
        normals = np.concatenate([normals, rng.standard_normal(normals.shape)], axis=1)
    for place, (share, end) in enumerate(zip(shares, ends.tolist(), strict=True)):
        rows = normals[place, : end if end > 0 else None]
        if end < 0 and len(rows) < most_turns:
            own = streams.stream("long sessions", chunk * CHUNK_SESSIONS + place)
            rows = _long(rows, own, asked[place : place + 1], call_below, most_turns)
        rows = rows[:most_turns]
        yield Drawn(share, rows, _results(rows, call_below))


def _results(normals: FloatArray, call_below: float) -> BoolArray:
    """Return which turns bring the result of a tool; the first one of a session never does."""
    results: BoolArray = normals[..., CALL] < call_below
    results[..., 0] = False
    return results


def _ends(normals: FloatArray, asked: np.ndarray, call_below: float) -> np.ndarray:
    """Return how many turns each session has: those before the one that begins a human's turn too many.

    Negative where that is not among those drawn.
    """
    begun = np.cumsum(~_results(normals, call_below), axis=1)
    over = begun > asked[:, np.newaxis]
    return np.where(over[:, -1], over.argmax(axis=1), -1)


def _long(
    rows: FloatArray, rng: np.random.Generator, asked: np.ndarray, call_below: float, most_turns: int
) -> FloatArray:
    """Return all turns of a session of which these are the first, or ``most_turns`` and some more."""
    while (end := int(_ends(rows[np.newaxis], asked, call_below)[0])) < 0 and len(rows) < most_turns:
        rows = np.concatenate([rows, rng.standard_normal(rows.shape)])
    return rows[: end if end > 0 else None]
