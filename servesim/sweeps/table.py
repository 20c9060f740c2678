"""The table of a sweep: one row per point, in grid order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from servesim.check import ConfigError, Problem
from servesim.files import in_one_go

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
    with in_one_go(path) as beside:
        pq.write_table(table, beside, compression="zstd")
    return path


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
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise ConfigError([Problem(str(place), None, f"is no table of a sweep ({error})")]) from error
    if lack := _lack(table):
        raise ConfigError([Problem(str(place), None, f"is no table of a sweep ({lack})")])
    return table


def _lack(table: pa.Table) -> str:
    """Say what a table lacks to be one of a sweep; nothing where it is one."""
    names = table.column_names
    missing = [name for name in FIRST | LAST if names.count(name) != 1]
    if missing:
        return f"it has no column {', '.join(missing)}"
    first = names.index("seed")
    if names[: len(FIRST)] != [*FIRST] or names[first : first + len(LAST)] != [*LAST]:
        return "its columns are in another order"
    odd = [name for name, kind in (FIRST | LAST).items() if not _is_of(table.schema.field(name).type, kind)]
    if odd:
        return f"of another type: {', '.join(odd)}"
    return "two columns have the same name" if len(set(names)) < len(names) else ""


def _is_of(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Tell whether a column can be read as one of a type: null where it has no value."""
    if pa.types.is_string(wanted):
        return any(kind(found) for kind in (pa.types.is_string, pa.types.is_large_string, pa.types.is_null))
    return bool(pa.types.is_integer(found))


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
