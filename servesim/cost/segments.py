"""Decode attention as straight pieces: what lets an engine leap over many steps at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

import numpy as np

from servesim.cost.step_time import FloatArray

#: Mean KV lengths (tokens per sequence) at which a piece ends and the next begins: the first, the ratio of
#: each to the one before, and a bound that no context reaches.
FIRST, RATIO, BEYOND = 16, 1.3, 2**21

_COUNT = int(np.ceil(np.log(BEYOND / FIRST) / np.log(RATIO)))
_KNOTS: FloatArray = np.concatenate([[1.0], np.round(FIRST * RATIO ** np.arange(_COUNT + 1))])

#: The lengths at which all pieces but the last end: with a number of sequences and a context, piece
#: ``bisect_left(LENGTHS, context / sequences)``.
LENGTHS: list[float] = _KNOTS[1:-1].tolist()

#: How many pieces there are.
PIECES = len(LENGTHS) + 1

#: base_s, slope_s, and the context (tokens) up to which a step takes base_s + slope_s x context.
Piece = tuple[float, float, float]


def straight_pieces(
    attention: Callable[[FloatArray, FloatArray], FloatArray], counts: FloatArray, beside_s: Sequence[float]
) -> tuple[list[list[float]], list[list[float]]]:
    """Return (base_s, slope_s) of decode-only steps, by number of sequences in ``counts`` and by piece.

    At its ends a piece is exactly the step's time, between them the chord; the last has no end.

    Args:
        attention: seconds of the attention of all layers, from arrays of sequences and of mean lengths.
        counts: the numbers of sequences, from 1 on.
        beside_s: the seconds of all else in the step, for each of them.

    """
    batch = counts[:, None]
    seconds = attention(batch, _KNOTS)
    slopes = np.diff(seconds) / (batch * np.diff(_KNOTS))
    bases = seconds[:, :-1] - slopes * (batch * _KNOTS[:-1]) + np.array(beside_s)[:, None]
    return bases.tolist(), slopes.tolist()


def limit(sequences: int, piece: int) -> float:
    """Return the context (tokens) up to which a piece goes."""
    return inf if piece == len(LENGTHS) else LENGTHS[piece] * sequences
