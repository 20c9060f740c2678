"""Rows of a Parquet file, some at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from servesim.workload.batch import BATCH_ROWS
from servesim.workload.formats.faults import refuse
from servesim.workload.formats.json_chunk import Placed


def names(path: Path) -> list[str]:
    """Return the names of the columns of a file.

    Raises ConfigError where it is no Parquet file.
    """
    import pyarrow.parquet as pq  # takes its time, and only who reads such a file needs it

    with _refusals(path), pq.ParquetFile(path) as file:
        return list(file.schema_arrow.names)


def has_any(path: Path, name: str) -> bool:
    """Tell whether a column of a file has a value anywhere."""
    import pyarrow.parquet as pq

    with _refusals(path):
        column = pq.read_table(path, columns=[name]).column(0)
        return bool(column.null_count < len(column))


def rows(path: Path, wanted: frozenset[str]) -> Iterator[Placed]:
    """Yield the rows of a file as JSON objects with those of these columns that are there.

    Raises ConfigError where it is no Parquet file.
    """
    import pyarrow.parquet as pq

    number = 0
    with _refusals(path), pq.ParquetFile(path) as file:
        columns = [name for name in file.schema_arrow.names if name in wanted]
        for batch in file.iter_batches(BATCH_ROWS, columns=columns):
            for row in batch.to_pylist():
                number += 1
                yield f"row {number}", row


@contextmanager
def _refusals(path: Path) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except pa.ArrowException as error:
        refuse(str(path), f"is no Parquet file: {' '.join(str(error).split())}")


def write(columns: Mapping[str, Sequence[Any]], path: Path) -> None:
    """Write columns of numbers, or of lists of block ids, to a file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    ids = pa.list_(pa.uint64())
    arrays = {
        name: pa.array(values, ids if isinstance(values[0], list) else None)
        for name, values in columns.items()
    }
    pq.write_table(pa.table(arrays), path)
