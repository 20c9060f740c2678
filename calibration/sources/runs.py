"""Tables of whole runs, as others measured them: CSV files below one folder of data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from calibration.sources.tidy import SourceError


def read_runs(data: Path, file: Path, columns: Sequence[str]) -> pd.DataFrame:
    """Return the table ``file`` below ``data``.

    Raises:
        SourceError: where there is no such file, or columns are missing in it.
    """
    path = data / file
    if not path.is_file():
        raise SourceError(f"{path}: there is no such file; --data names the folder that holds {file}")
    table = pd.read_csv(path)
    missing = [name for name in columns if name not in table]
    if missing:
        raise SourceError(f"{path}: the columns {', '.join(missing)} are missing")
    return table
