"""The result of a run, in memory or in a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml
from numpy.typing import NDArray

from servesim.results.gaps import token_gaps
from servesim.results.records import Records

if TYPE_CHECKING:
    import pandas as pd

#: The file of a run folder that says what came of the run.
SUMMARY = "summary.json"


class Result:
    """What a run leaves behind.

    Attributes:
        summary: the dict of ``summary.json``.

    """

    def __init__(self, summary: dict[str, Any], records: Records) -> None:
        self.summary = summary
        self._records = records

    @property
    def requests(self) -> pd.DataFrame:
        """One row per request in order of finishing: the columns of ``requests.parquet``."""
        return self._records.request_table.frame()

    @property
    def steps(self) -> pd.DataFrame:
        """One row per leap in order of ending: the columns of ``steps.parquet``."""
        return self._records.step_table.frame()

    @property
    def gaps(self) -> pd.DataFrame:
        """The gaps between tokens that are not one step long: the columns of ``gaps.parquet``."""
        return self._records.gap_table.frame()

    @property
    def itl_s(self) -> NDArray[np.float64]:
        """All gaps between tokens (seconds), of all requests together and in no order."""
        parts = [np.repeat(*runs.expanded()) for runs in token_gaps(self._records)()]
        return np.concatenate([np.empty(0), *parts])

    def save(self, folder: str | Path) -> None:
        """Write the run folder: ``summary.json``, ``config.yaml`` and the three tables."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        for table in self._records.tables:
            table.save(target)
        text = json.dumps(self.summary, indent=2, allow_nan=False)
        (target / SUMMARY).write_text(text + "\n", encoding="utf-8")
        config = yaml.safe_dump(self.summary["scenario"], sort_keys=False)
        (target / "config.yaml").write_text(config, encoding="utf-8")
