"""Own measurements: parquet files, one per operation, already tidy."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from calibration.sources.tidy import SHAPES, SourceError, tidy


def read(folder: Path) -> dict[str, pd.DataFrame]:
    """Return the tidy table of every operation that ``folder`` holds as ``<operation>.parquet``.

    Columns beyond the schema (clocks, driver, date) are left in the files.

    Raises:
        SourceError: listing the files that cannot be read, or are no such tables.
    """
    tables, problems = dict[str, pd.DataFrame](), list[str]()
    for operation in SHAPES:
        path = folder / f"{operation}.parquet"
        if not path.exists():
            continue
        try:
            tables[operation] = tidy(pd.read_parquet(path).assign(source=path.name), operation)
        except KeyError as problem:
            problems.append(f"{path}: columns are missing: {problem.args[0]}")
        except (OSError, ValueError, TypeError, SourceError) as problem:
            problems.append(f"{path}: cannot be read: {problem}")
    if problems:
        raise SourceError("\n".join(problems))
    return tables


def write(tables: dict[str, pd.DataFrame], folder: Path) -> None:
    """Write tables where :func:`read` finds them."""
    folder.mkdir(parents=True, exist_ok=True)
    for operation, table in tables.items():
        tidy(table, operation).to_parquet(folder / f"{operation}.parquet", index=False)
