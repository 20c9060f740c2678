"""The rows of a run: buffers that the engine extends, in front of parquet files.

Buffers are moved to the files in groups of a fixed number of rows, so that memory stays flat and the bytes
of a file depend on its rows alone, not on how often the buffers were flushed.
"""

from __future__ import annotations

import functools
import shutil
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from servesim.cluster.deployment import Deployment
from servesim.engine.log import GAP_FIELDS, REQUEST_FIELDS, STEP_FIELDS
from servesim.results import columns
from servesim.results.arrow import WORD, to_arrow
from servesim.results.stored import Stored

#: Rows of one parquet row group: 5 MB of raw rows at most, and few enough groups to read quickly.
GROUP_ROWS = 32_768


class Table(Stored):
    """One table of the run folder: written row group by row group, then read column by column.

    Args:
        name: the table's name; the file is ``<name>.parquet``.
        fields: number of doubles in a raw row.
        schema: the columns of the file.
        encode: the columns from raw rows of shape (fields, rows).
        folder: where the file goes; None keeps its bytes in memory.

    """

    def __init__(
        self,
        name: str,
        fields: int,
        schema: pa.Schema,
        encode: Callable[[columns.Floats], columns.Columns],
        folder: Path | None,
    ) -> None:
        self.name = name
        self.rows = array("d")
        self._fields = fields
        self._schema = schema
        self._encode = encode
        self._file = None if folder is None else folder.resolve() / f"{name}.parquet"
        self._sink: Any = pa.BufferOutputStream() if self._file is None else str(self._file)
        words = [field.name for field in schema if field.type == WORD]
        self._writer = pq.ParquetWriter(
            self._sink, schema, compression="lz4", use_dictionary=words, write_statistics=False
        )

    def flush(self) -> None:
        """Move the full row groups of the buffer to the file."""
        while len(self.rows) >= GROUP_ROWS * self._fields:
            self._write(GROUP_ROWS)

    def close(self) -> None:
        """Move what is left to the file and finish it; from now on the table is read."""
        self.flush()
        if self.rows:
            self._write(len(self.rows) // self._fields)
        self._writer.close()

    def _write(self, count: int) -> None:
        size = count * self._fields
        raw = np.frombuffer(self.rows, count=size).reshape(count, self._fields).T.copy()
        del self.rows[:size]
        self._writer.write_table(to_arrow(self._encode(raw), self._schema, columns.WORDS))

    @functools.cached_property
    def contents(self) -> pa.Buffer:
        """The bytes of a file that is kept in memory."""
        return self._sink.getvalue()

    @functools.cached_property
    def _reader(self) -> pq.ParquetFile:
        return pq.ParquetFile(pa.BufferReader(self.contents) if self._file is None else str(self._file))

    def save(self, folder: Path) -> None:
        """Put the file into ``folder``, unless it was written there."""
        target = folder.resolve() / f"{self.name}.parquet"
        if self._file is None:
            target.write_bytes(self.contents)
        elif self._file != target:
            shutil.copyfile(self._file, target)


class Records:
    """The log of one run: three buffers for the engine, three tables for whoever reads the run.

    The engine extends ``requests``, ``steps`` and ``gaps`` by the rows of ``servesim.engine.log``; the
    driver calls :meth:`flush` every few thousand requests and :meth:`close` at the end; then the tables
    ``request_table``, ``step_table`` and ``gap_table`` can be read.
    """

    def __init__(self, deployments: Sequence[Deployment], folder: Path | None = None) -> None:
        steps = functools.partial(columns.step_columns, deployments=deployments)
        self.request_table = Table(
            "requests", len(REQUEST_FIELDS), columns.REQUESTS, columns.request_columns, folder
        )
        self.step_table = Table("steps", len(STEP_FIELDS), columns.STEPS, steps, folder)
        self.gap_table = Table("gaps", len(GAP_FIELDS), columns.GAPS, columns.gap_columns, folder)
        self.tables = (self.request_table, self.step_table, self.gap_table)
        self.requests = self.request_table.rows
        self.steps = self.step_table.rows
        self.gaps = self.gap_table.rows

    def flush(self) -> None:
        """Move full buffers to the files; cheap when nothing is full."""
        for table in self.tables:
            table.flush()

    def close(self) -> None:
        """Finish the files; from now on the records are read."""
        for table in self.tables:
            table.close()
