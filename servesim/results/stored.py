"""Tables of a run that are read: column by column, wherever they lie."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from servesim.check import ConfigError, Problem
from servesim.results import columns
from servesim.results.arrow import INDEX, to_numpy

if TYPE_CHECKING:
    import pandas as pd


class Stored:
    """A finished parquet file, read column by column.

    Args:
        path: where the file is.

    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @functools.cached_property
    def _reader(self) -> pq.ParquetFile:
        return pq.ParquetFile(str(self._path))

    def __len__(self) -> int:
        """Return the number of rows in the file."""
        return int(self._reader.metadata.num_rows)

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self._reader.schema_arrow.names)

    def groups(self, *names: str) -> Iterator[tuple[NDArray[Any], ...]]:
        """Yield the named columns, one row group after the other: null is NaN, a word its code."""
        for group in range(self._reader.num_row_groups):
            table = self._reader.read_row_group(group, columns=list(names), use_threads=False)
            yield tuple(to_numpy(table.column(name), columns.WORDS.get(name, ())) for name in names)

    def column(self, name: str) -> NDArray[Any]:
        """Return one whole column: null is NaN, a word its code."""
        column = self._reader.read(columns=[name], use_threads=False).column(0)
        return to_numpy(column, columns.WORDS.get(name, ()))

    def frame(self) -> pd.DataFrame:
        """Return the whole table as a DataFrame; the index of a replica may be missing there."""
        import pandas as pd

        indices = {INDEX: pd.Int32Dtype()}
        frame: pd.DataFrame = self._reader.read().to_pandas(types_mapper=indices.get)
        return frame


class Tables(Protocol):
    """The three tables of one run."""

    @property
    def request_table(self) -> Stored:
        """One row per request in order of finishing."""

    @property
    def step_table(self) -> Stored:
        """One row per leap in order of ending."""

    @property
    def gap_table(self) -> Stored:
        """One row per gap between tokens that is not one step long."""


class Folder:
    """The tables of a run as they lie in its folder.

    Raises:
        ConfigError: a file is missing, cannot be read, or lacks a column.
    """

    def __init__(self, folder: Path) -> None:
        found: list[Problem] = []
        for name, schema in _TABLES.items():
            found += table_problems(folder / name, schema)
        if found:
            raise ConfigError(found)
        self.request_table, self.step_table, self.gap_table = (Stored(folder / name) for name in _TABLES)


_TABLES = {
    "requests.parquet": columns.REQUESTS,
    "steps.parquet": columns.STEPS,
    "gaps.parquet": columns.GAPS,
}


def table_problems(path: Path, schema: pa.Schema) -> Iterator[Problem]:
    """Yield what is wrong with the file of a table: it is missing, cannot be read, or lacks columns."""
    if not path.is_file():
        yield Problem(str(path), None, "there is no such file")
        return
    try:
        there = Stored(path).names
    except ValueError as error:  # pyarrow's errors are of this kind
        yield Problem(str(path), None, f"cannot be read: {' '.join(str(error).split())}")
        return
    message = "there is no such column; the run is of an earlier version, run it again"
    yield from (Problem(f"{path}: {name}", None, message) for name in schema.names if name not in there)
