"""Own measurements: parquet files, one per operation, already tidy."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from calibration.sources.tidy import SHAPES, tidy


def read(folder: Path) -> dict[str, pd.DataFrame]:
    """Return the tidy table of every operation that ``folder`` holds as ``<operation>.parquet``.

    Columns beyond the schema (clocks, driver, date) are left in the files.
    """
    return {
        operation: tidy(pd.read_parquet(path).assign(source=path.name), operation)
        for operation in SHAPES
        if (path := folder / f"{operation}.parquet").exists()
    }


def write(tables: dict[str, pd.DataFrame], folder: Path) -> None:
    """Write tables where :func:`read` finds them."""
    folder.mkdir(parents=True, exist_ok=True)
    for operation, table in tables.items():
        tidy(table, operation).to_parquet(folder / f"{operation}.parquet", index=False)
