"""Columns between numpy and arrow, by their buffers.

``pyarrow.array`` and ``Array.to_numpy`` both import pandas, which would cost every run on the command line
half a second; the buffers themselves need nothing and copy little.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

#: A column of few distinct words, kept as codes.
WORD = pa.dictionary(pa.int8(), pa.string())
#: The index of a replica, null for "none". Other whole numbers are 64 bits wide and never null.
INDEX = pa.int32()

_DTYPES = {pa.float64(): np.float64, pa.int64(): np.int64, INDEX: np.int32, pa.int8(): np.int8}


def to_arrow(
    columns: Mapping[str, NDArray[Any]], schema: pa.Schema, words: Mapping[str, Sequence[str]]
) -> pa.Table:
    """Return the table of the columns that ``schema`` names.

    NaN and a negative index become null. The codes of a column of words index ``words[name]``.
    """
    arrays = [
        _words(columns[field.name], words[field.name])
        if field.type == WORD
        else _numbers(columns[field.name], field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def to_numpy(column: pa.ChunkedArray, words: Sequence[str] = ()) -> NDArray[Any]:
    """Return a column of numbers with NaN for null, or of words as their codes in ``words``."""
    parts = [_codes(chunk, words) if column.type == WORD else _values(chunk) for chunk in column.chunks]
    return (
        parts[0]
        if len(parts) == 1
        else np.concatenate([np.empty(0, _DTYPES.get(column.type, np.int8)), *parts])
    )


def _words(codes: NDArray[Any], words: Sequence[str]) -> pa.Array:
    ends = np.cumsum([0, *(len(word) for word in words)]).astype(np.int32)
    text = pa.py_buffer("".join(words).encode("ascii"))
    dictionary = pa.Array.from_buffers(pa.string(), len(words), [None, pa.py_buffer(ends), text])
    return pa.DictionaryArray.from_arrays(_numbers(codes, pa.int8()), dictionary)


def _numbers(values: NDArray[Any], kind: pa.DataType) -> pa.Array:
    known = values >= 0 if kind == INDEX else ~np.isnan(values) if kind == pa.float64() else None
    nulls = None if known is None or known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))
    data = pa.py_buffer(np.ascontiguousarray(values, dtype=_DTYPES[kind]))
    return pa.Array.from_buffers(kind, len(values), [nulls, data])


def _codes(chunk: pa.DictionaryArray, words: Sequence[str]) -> NDArray[Any]:
    own = np.array([words.index(word) for word in chunk.dictionary.to_pylist()], dtype=np.int8)
    codes: NDArray[Any] = own[_values(chunk.indices)]
    return codes


def _values(chunk: pa.Array) -> NDArray[Any]:
    nulls, data = chunk.buffers()
    values: NDArray[Any] = np.frombuffer(data, _DTYPES[chunk.type])[chunk.offset : chunk.offset + len(chunk)]
    if chunk.null_count == 0:
        return values
    known = np.unpackbits(np.frombuffer(nulls, np.uint8), bitorder="little")
    return np.where(known[chunk.offset : chunk.offset + len(chunk)], values, np.nan)
