"""Sweeps and runs that lie in a folder, as tables."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from pyarrow import ArrowInvalid

from servesim.check import ConfigError, Problem
from servesim.report.frontier.drawing import Sweep
from servesim.sweeps.flat import flatten
from servesim.sweeps.study import Study
from servesim.sweeps.sweep import STUDY
from servesim.sweeps.table import NAME, read_table

SUMMARY, REQUESTS = "summary.json", "requests.parquet"


@dataclass(frozen=True)
class Loaded:
    """A sweep, and of each of its rows the requests that its figures speak of, if the files have them."""

    sweep: Sweep
    requests: Sequence[pd.DataFrame] = field(default=())


def load_folder(folder: Path) -> dict[str, Loaded]:
    """Return what a folder holds: each sweep by the name of its folder, and all runs as one.

    Raises:
        ConfigError: there is no such folder, nothing is in it, or something cannot be read.
    """
    if not folder.is_dir():
        raise ConfigError([Problem(str(folder), None, "there is no such folder")])
    tables = sorted(folder.rglob(NAME))
    summaries = sorted(path for path in folder.rglob(SUMMARY) if path.with_name(REQUESTS).is_file())
    if not tables and not summaries:
        raise ConfigError([Problem(str(folder), None, f"holds no sweep ({NAME}) and no run ({SUMMARY})")])
    try:
        found = {_name(path.parent, folder): Loaded(_sweep(path)) for path in tables}
        return found | ({"runs": _runs(summaries, folder)} if summaries else {})
    except (OSError, json.JSONDecodeError, ArrowInvalid) as error:
        raise ConfigError([Problem(str(folder), None, f"cannot be read: {error}")]) from error


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


def _runs(summaries: Sequence[Path], folder: Path) -> Loaded:
    """Return runs as a sweep with a variant for each."""
    rows, requests = [], []
    for number, path in enumerate(summaries):
        summary = json.loads(path.read_text(encoding="utf-8"))
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
        requests.append(_judged_part(pd.read_parquet(path.with_name(REQUESTS)), summary))
    return Loaded(Sweep(pd.DataFrame(rows), "runs"), requests)


def _judged_part(requests: pd.DataFrame, summary: Mapping[str, Any]) -> pd.DataFrame:
    """Return the requests that a summary speaks of: those sent in its window."""
    if not summary["scenario"]["steady"]:
        return requests
    start_s = summary["warmup_cut_s"]
    return requests[requests.sent_s.between(start_s, start_s + summary["window_s"])]
