"""Cells of a table of requests: text to whole numbers, a column at a time.

Each reader takes the cells of a column and raises ValueError if one of them breaks its rule.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain

import numpy as np

from servesim.workload.batch import IntArray
from servesim.workload.formats.recording import IdArray, Ragged

#: No prompt has a thousand million tokens; such a cell holds something else.
MOST_TOKENS = 10**9
#: Seconds, not milliseconds, since 1970: the year 2255, and the most that fits into nanoseconds.
LATEST_S = 9e9

# numpy also takes "now", "NaT" and years that overflow nanoseconds without a word.
_TIMESTAMP = re.compile(r"(19[7-9]|20\d|21\d)\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,9})?", re.ASCII)
_UTC = "+00:00"


def tokens(cells: Sequence[str], at_least: int, at_most: int = MOST_TOKENS) -> IntArray:
    """Read whole numbers within these bounds."""
    if not all(map(str.isdecimal, cells)) or not all(map(str.isascii, cells)):
        raise ValueError
    values = list(map(int, cells))
    if min(values) < at_least or max(values) > at_most:
        raise ValueError
    return np.array(values, dtype=np.int64)


def seconds(cells: Sequence[str]) -> IntArray:
    """Read seconds from 0 to ``LATEST_S`` as nanoseconds."""
    if any("_" in cell or not cell.isascii() for cell in cells):  # Python reads 1_0 as 10
        raise ValueError
    values = np.array(list(map(float, cells)))
    if not np.all((values >= 0) & (values <= LATEST_S)):  # a NaN is in no interval
        raise ValueError
    return np.rint(values * 1e9).astype(np.int64)


def timestamps(cells: Sequence[str]) -> IntArray:
    """Read times such as ``2023-11-16 18:15:46.6805900`` (UTC) as nanoseconds since 1970."""
    plain = [cell.removesuffix(_UTC) for cell in cells]
    if not all(map(_TIMESTAMP.fullmatch, plain)):
        raise ValueError
    return np.array(plain, dtype="datetime64[ns]").astype(np.int64)


def ids(cells: Sequence[str]) -> Ragged:
    """Read lists of whole numbers of 64 bits, with blanks between them."""
    rows = [cell.split() for cell in cells]
    items = list(chain.from_iterable(rows))
    if not all(map(str.isdecimal, items)) or not all(map(str.isascii, items)):
        raise ValueError
    counts = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    return Ragged(whole_ids(list(map(int, items))), counts)


def whole_ids(items: Sequence[int]) -> IdArray:
    """Return whole numbers as the ids of blocks; ValueError where one has more than 64 bits."""
    try:
        return np.array(items, dtype=np.uint64)
    except OverflowError:
        raise ValueError from None
