"""A folder of measurements: a tidy table per operation, written anew in one piece, and what failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pandas as pd

from calibration.measure.case import PLANNED, Case
from calibration.measure.machine import Machine
from calibration.measure.timer import Timing
from calibration.sources.tidy import COMMON, SHAPES, SourceError, tidy
from servesim.files import in_one_go

FAILURES = "failures"


class Store:
    """The rows of one machine in a folder; rows of another one that lie there are set aside first."""

    def __init__(self, folder: Path, machine: Machine) -> None:
        """Read what the folder holds.

        Raises:
            SourceError: where a file is not such a table.
        """
        self.folder, self.machine = folder, machine
        folder.mkdir(parents=True, exist_ok=True)
        self.set_aside = self._set_aside_others()
        self._rows = {name: self._read(name).to_dict("records") for name in SHAPES}
        self._done = {
            Case(name, tuple(row[column] for column in PLANNED[name]))
            for name, rows in self._rows.items()
            for row in rows
        }
        self._failures: dict[Case, dict[str, Any]] = {}
        self._unsaved = {FAILURES}

    def has(self, case: Case) -> bool:
        """Return whether a case has its row."""
        return case in self._done

    def add(self, case: Case, kernel: str, timing: Timing, clocks: Mapping[str, float | None]) -> None:
        """Take a row; :meth:`save` writes it."""
        said = asdict(self.machine)
        measured = asdict(timing)
        row = {
            **{name: said.pop(name) for name in COMMON if name in said},
            "source": f"{case.operation}.parquet",
            **case.shape,
            "kernel": kernel,
            "timing": measured.pop("how"),
            **measured,
            **said,
            **clocks,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        self._rows[case.operation].append(row)
        self._done.add(case)
        self._failures.pop(case, None)
        self._unsaved.add(case.operation)

    def fail(self, case: Case, error: str, *, unsupported: bool) -> None:
        """Take the reason why a case has no row."""
        said = {"operation": case.operation, "shape": str(case), "error": error, "unsupported": unsupported}
        self._failures[case] = said | asdict(self.machine)
        self._unsaved.add(FAILURES)

    @property
    def failures(self) -> dict[Case, dict[str, Any]]:
        """The cases of this run that failed: why, and whether this machine cannot run them at all."""
        return dict(self._failures)

    def save(self) -> None:
        """Write the tables that have changed; each file is replaced in one piece."""
        while self._unsaved:
            name = next(iter(self._unsaved))
            path = self.folder / f"{name}.parquet"
            if name != FAILURES:
                with in_one_go(path) as beside:
                    _ordered(pd.DataFrame(self._rows[name]), name).to_parquet(beside, index=False)
            elif self._failures:
                with in_one_go(path) as beside:
                    pd.DataFrame([*self._failures.values()]).to_parquet(beside, index=False)
            else:
                path.unlink(missing_ok=True)
            self._unsaved.discard(name)

    def _set_aside_others(self) -> Path | None:
        """Move the files of another machine, or of other versions, into a folder of their own below."""
        tables = {name: self._read(name) for name in SHAPES}
        here = pd.Series(asdict(self.machine))
        others = [
            name
            for name, table in tables.items()
            if len(table) and not (table[here.index] == here).all(axis=None)
        ]
        if not others:
            return None
        aside = next(path for number in count(1) if not (path := self.folder / f"other-{number}").exists())
        aside.mkdir()
        for path in self.folder.glob("*.parquet"):
            path.rename(aside / path.name)
        return aside

    def _read(self, name: str) -> pd.DataFrame:
        path = self.folder / f"{name}.parquet"
        needed = list(dict.fromkeys((*COMMON, *SHAPES[name], *Machine.columns())))
        if not path.exists():
            return pd.DataFrame(columns=needed)
        try:
            table = pd.read_parquet(path)
        except (OSError, ValueError) as problem:
            raise SourceError(f"{path}: cannot be read as parquet: {problem}") from None
        if missing := [column for column in needed if column not in table]:
            raise SourceError(f"{path}: the columns {', '.join(missing)} are missing")
        return table


def _ordered(rows: pd.DataFrame, operation: str) -> pd.DataFrame:
    """Return rows with the tidy columns first, in their types, and all others behind them."""
    types = tidy(rows, operation).dtypes.to_dict()
    return rows.astype(types)[[*types, *(name for name in rows if name not in types)]]
