"""Rows of a trace, a chunk at a time: memory holds the numbers of all rows, but the text of one chunk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from servesim.check import Problem
from servesim.words import listed
from servesim.workload.batch import IntArray
from servesim.workload.formats.faults import Faults, Recurring, no_request, refuse
from servesim.workload.formats.field import Field
from servesim.workload.formats.recording import Blocks, Ragged, Recording

Numbers: TypeAlias = "dict[str, IntArray | Ragged]"
"""Columns of numbers by the role of their field."""


class Chunk(Protocol):
    """Some rows of a file."""

    def column(self, field: Field) -> Sequence[Any]:
        """Return the values of a field; ValueError where a row is no row of this table."""

    def problems(self, fields: Sequence[Field]) -> Iterator[Problem | Recurring]:
        """Yield each wrong row, and each wrong value, with its place."""


def gathered(chunks: Iterable[Chunk], fields: Sequence[Field], faults: Faults) -> Numbers:
    """Return the numbers of all rows, none where there are no rows.

    Raises ConfigError with all that is wrong with them.
    """
    parts: list[list[IntArray | Ragged]] = []
    for chunk in chunks:
        try:
            parts.append([field.read(chunk.column(field)) for field in fields])
        except ValueError:
            found = list(chunk.problems(fields))
            if not found:  # no row of a chunk may be lost without a word
                raise
            faults.add(found)
    faults.check()
    columns = zip(*parts, strict=True) if parts else ()
    return {field.role: _joined(column) for field, column in zip(fields, columns, strict=False)}


def recording(
    numbers: Numbers,
    format: str,
    path: str,
    fields: Sequence[Field],
    *,
    block_tokens: int | None = None,
    left_out: tuple[tuple[str, int], ...] = (),
    unread: tuple[str, ...] = (),
) -> Recording:
    """Return the recording that these numbers of these fields are; where they have no times, it is not timed.

    Blocks have ``block_tokens`` tokens, or as many as the numbers say.

    Raises ConfigError where there is no request, or where blocks are of several sizes.
    """
    if not numbers:
        no_request(path, left_out)
    inputs, outputs = (_plain(numbers[role]) for role in ("input_tokens", "output_tokens"))
    timed = "time_ns" in numbers
    return Recording(
        time_ns=_plain(numbers["time_ns"]) if timed else np.zeros_like(inputs),
        input_tokens=inputs,
        output_tokens=outputs,
        format=format,
        timed=timed,
        blocks=_blocks(numbers, block_tokens, path),
        left_out=left_out,
        read=tuple(field.told for field in fields),
        unread=unread,
    )


def _blocks(numbers: Numbers, tokens: int | None, path: str) -> Blocks | None:
    found = numbers.get("blocks")
    if not isinstance(found, Ragged):
        return None
    if tokens is None:
        said = np.unique(_plain(numbers["block_tokens"]))
        if len(said) > 1:
            refuse(path, f"must have one block_tokens in all rows, not {listed(said[:3].tolist(), 'and')}")
        tokens = int(said[0])
    return Blocks(found.items, np.concatenate([[0], np.cumsum(found.counts)]), tokens)


def _plain(column: IntArray | Ragged) -> IntArray:
    assert not isinstance(column, Ragged)
    return column


def _joined(parts: Sequence[IntArray | Ragged]) -> IntArray | Ragged:
    if isinstance(parts[0], Ragged):
        return Ragged(*(np.concatenate(each) for each in zip(*parts, strict=True)))
    return np.concatenate(parts)
