"""Sweeps and runs that lie in a folder, as tables."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from servesim.check import ConfigError, Problem
from servesim.report.frontier.drawing import Sweep
from servesim.report.run.shape import summary_problems, table_problems, without_requests
from servesim.sweeps.flat import flatten
from servesim.sweeps.study import Study
from servesim.sweeps.sweep import STUDY
from servesim.sweeps.table import NAME, read_table

Part = TypeVar("Part")

SUMMARY, REQUESTS = "summary.json", "requests.parquet"


@dataclass(frozen=True)
class Loaded:
    """A sweep, and the requests of each of its rows, if the files have them."""

    sweep: Sweep
    requests: Sequence[pd.DataFrame] = field(default=())


def load_folder(folder: Path, tell: Callable[[Problem], None] | None = None) -> dict[str, Loaded]:
    """Return what a folder holds: each sweep by the name of its folder, and all runs as one.

    What cannot be read is left out, and ``tell`` is called with what is wrong with it.

    Raises:
        ConfigError: there is no such folder, or nothing in it can be read.
    """
    if not folder.is_dir():
        raise ConfigError([Problem(str(folder), None, "there is no such folder")])
    tables = sorted(folder.rglob(NAME))
    summaries = sorted(path for path in folder.rglob(SUMMARY) if path.with_name(REQUESTS).is_file())
    if not tables and not summaries:
        raise ConfigError([Problem(str(folder), None, f"holds no sweep ({NAME}) and no run ({SUMMARY})")])
    wrong: list[Problem] = []
    found = {
        _name(path.parent, folder): Loaded(sweep)
        for path in tables
        if (sweep := _readable(_sweep, path, wrong)) is not None
    }
    runs = [(path, run) for path in summaries if (run := _readable(_run, path, wrong)) is not None]
    if runs:
        found["runs"] = _runs(runs, folder)
    if not found:
        raise ConfigError(wrong)
    if tell is not None:
        for problem in wrong:
            tell(problem)
    return found


def _readable(read: Callable[[Path], Part], path: Path, wrong: list[Problem]) -> Part | None:
    """Return what a file holds; None, and a problem, where it cannot be read."""
    try:
        return read(path)
    except ConfigError as error:
        wrong += error.problems
    except (OSError, ValueError) as error:  # pyarrow's errors are ValueErrors
        wrong.append(Problem(str(path), None, f"cannot be read: {error}"))
    return None


def _run(path: Path) -> tuple[Mapping[str, Any], pd.DataFrame]:
    """Return the summary of a run and its requests.

    Raises:
        ConfigError: they are not as a run of this version leaves them.
    """
    summary, requests = json.loads(path.read_text(encoding="utf-8")), path.with_name(REQUESTS)
    said = [
        *(Problem(str(path), None, str(each)) for each in summary_problems(summary)),
        *(
            Problem(str(requests), None, str(each))
            for each in table_problems("requests", pd.read_parquet(requests))
        ),
    ]
    if said or (said := list(without_requests(summary, path))):
        raise ConfigError(said)
    return summary, pd.read_parquet(requests)


def _name(path: Path, folder: Path) -> str:
    inner = path.relative_to(folder).as_posix()
    return path.resolve().name if inner == "." else inner


def _sweep(path: Path) -> Sweep:
    """Return a sweep with what its study says of it, if the study lies beside it."""
    table, name, beside = read_table(path), path.parent.resolve().name, path.with_name(STUDY)
    if not beside.is_file():
        return Sweep(table, name)
    study = Study.read(beside)
    load = study.load.key if study.load else None
    return Sweep(table, name, study.question, study.overrides, study.compare, study.baseline, load)


def _runs(runs: Sequence[tuple[Path, tuple[Mapping[str, Any], pd.DataFrame]]], folder: Path) -> Loaded:
    """Return runs as a sweep with a variant for each."""
    rows, requests = [], []
    for number, (path, (summary, sent)) in enumerate(runs):
        rows.append(
            {
                "point": number,
                "variant": _name(path.parent, folder),
                "seed": summary["scenario"]["seed"],
                "status": "clean" if summary["accounting"]["clean"] else "not_clean",
                "error": None,
                "command": shlex.join(["servesim", "page", str(path.parent)]),
                "hash": "",
                **flatten(summary),
            }
        )
        requests.append(sent)
    return Loaded(Sweep(pd.DataFrame(rows), "runs"), requests)
