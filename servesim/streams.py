"""Named independent random streams from one seed."""

from __future__ import annotations

import zlib

import numpy as np


class Streams:
    """Hands out random generators by name.

    The stream of a name depends on the seed and the name alone: not on the order in which streams are
    asked for, nor on what else draws. So request i has the same lengths in every configuration
    (common random numbers), and a router that draws more does not disturb the arrivals.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def stream(self, name: str, *numbers: int) -> np.random.Generator:
        """Return a fresh generator at the start of the stream called ``name``, or of one of many such."""
        key = (zlib.crc32(name.encode()), *numbers)
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(self.seed, spawn_key=key)))
