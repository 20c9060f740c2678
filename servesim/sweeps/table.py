"""The table of a sweep: one row per point, in grid order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from servesim.check import ConfigError, Problem

if TYPE_CHECKING:
    import pandas as pd

#: The file in the folder of a sweep.
NAME = "sweep.parquet"

#: Columns before and after those of the axes, each with its type; then come the figures.
FIRST = {"point": pa.int64(), "variant": pa.string()}
LAST = {
    "seed": pa.int64(),
    "status": pa.string(),
    "error": pa.string(),
    "command": pa.string(),
    "hash": pa.string(),
}

#: Whole numbers of this size have no place in 64 bits.
_TOO_LARGE = 2**63

Row = Mapping[str, Any]


def table_of(rows: Sequence[Row], axes: Sequence[str]) -> pa.Table:
    """Return rows as a table: fixed columns, the ``axes``, and all figures that some row has.

    Values of several kinds in one column become text, and so do whole numbers that 64 bits cannot hold; a
    column without any value is of numbers, all null.
    """
    fixed = [*FIRST, *axes, *LAST]
    names = [*fixed, *_in_sections(name for row in rows for name in row if name not in fixed)]
    types = FIRST | LAST
    columns = [_column([row.get(name) for row in rows], types.get(name)) for name in names]
    return pa.table(dict(zip(names, columns, strict=True)))


def axes_of(columns: Iterable[str]) -> list[str]:
    """Return the keys of the axes among the columns of a table."""
    names = list(columns)
    return names[len(FIRST) : names.index("seed")]


def write_table(table: pa.Table, folder: Path) -> Path:
    """Write ``sweep.parquet``, in one go: whoever reads it finds the old table or the new one."""
    path = folder / NAME
    beside = path.with_suffix(".part")
    pq.write_table(table, beside, compression="zstd")
    return beside.replace(path)


def read_table(place: str | Path) -> pd.DataFrame:
    """Return the table of a sweep from its folder, or from the file itself.

    Raises:
        ConfigError: there is none.
    """
    return frame_of(read_arrow(place))


def read_arrow(place: str | Path) -> pa.Table:
    """Return the table of a sweep as :func:`read_table` does, for pyarrow."""
    path = Path(place) / NAME if Path(place).is_dir() else Path(place)
    try:
        return pq.read_table(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise ConfigError([Problem("", str(place), f"is no table of a sweep ({error})")]) from error


def frame_of(table: pa.Table) -> pd.DataFrame:
    """Return a table as pandas knows it."""
    frame: pd.DataFrame = table.to_pandas()
    return frame


def _in_sections(names: Iterable[str]) -> list[str]:
    """Return names, each once, in the order in which they came, but those of a section side by side."""
    unique = list(dict.fromkeys(names))
    sections = list(dict.fromkeys(name.partition(".")[0] for name in unique))
    return sorted(unique, key=lambda name: sections.index(name.partition(".")[0]))


def _column(values: list[Any], kind: pa.DataType | None) -> pa.Array:
    if kind is not None:
        return pa.array(values, type=kind)
    kinds = {type(value) for value in values if value is not None}
    if not kinds:
        return pa.array(values, type=pa.float64())
    if kinds <= {int, float} and not any(
        isinstance(value, int) and abs(value) >= _TOO_LARGE for value in values
    ):
        return pa.array(values, type=pa.float64() if float in kinds else pa.int64())
    return pa.array(values) if kinds in ({bool}, {str}) else pa.array(map(_as_text, values), type=pa.string())


def _as_text(value: Any) -> str | None:
    """Return a value as it is typed on the command line."""
    return value if value is None or isinstance(value, str) else json.dumps(value)
