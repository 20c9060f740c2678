"""Which rows are fitted and which are held out: by a hash of their shape, so that every refit agrees."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
import pandas as pd
from numpy.typing import NDArray

SPLITS = 10
FOLDS = 5
MOST_TO_LEAVE_ONE_OUT = 24

#: Of 256: a fifth of the rows is held out.
_HELD_OUT = 51


def held_out(rows: pd.DataFrame, shape: Sequence[str]) -> NDArray[np.bool_]:
    """Return an array [rows, SPLITS]: whether a row is held out in each split.

    Byte i of the BLAKE2b hash of the row's shape columns, written as text and joined by ``|``, decides
    split i: held out below 51. The profile's coefficients are fitted in split 0.
    """
    return _hashes(rows, shape)[:, :SPLITS] < _HELD_OUT


def folds(rows: pd.DataFrame, group: Sequence[str]) -> NDArray[np.int64]:
    """Return the fold of every row: rows that agree in the ``group`` columns are in one fold.

    Few groups are a fold each (one is left out at a time); more are spread over FOLDS by their hash.
    """
    number = rows.groupby(list(group), sort=True).ngroup().to_numpy()
    if number.max() + 1 <= MOST_TO_LEAVE_ONE_OUT:
        return number.astype(np.int64)
    return _hashes(rows, group)[:, 0].astype(np.int64) % FOLDS


def _hashes(rows: pd.DataFrame, columns: Sequence[str]) -> NDArray[np.uint8]:
    texts = ("|".join(map(str, shape)) for shape in zip(*(rows[name] for name in columns), strict=True))
    digests = b"".join(blake2b(text.encode(), digest_size=16).digest() for text in texts)
    return np.frombuffer(digests, dtype=np.uint8).reshape(len(rows), 16)
