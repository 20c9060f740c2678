"""A sweep from beginning to end: from a study to its table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import yaml

from servesim.check import ConfigError, Problem
from servesim.config.groups import Groups
from servesim.files import in_one_go
from servesim.sweeps.finished import Finished
from servesim.sweeps.grid import grid
from servesim.sweeps.plan import Plan
from servesim.sweeps.point import Outcome, Point
from servesim.sweeps.store import Store
from servesim.sweeps.study import Study, study_of
from servesim.sweeps.table import frame_of, read_arrow, table_of, write_table
from servesim.sweeps.work import Progress, Work

if TYPE_CHECKING:
    import pandas as pd

#: Files in the folder of a sweep: the study as it was run, and the page that shows it.
STUDY, PAGE = "study.yaml", "index.html"


class Swept(NamedTuple):
    """The table of a sweep, and how many of its points were known from before."""

    table: pa.Table
    known: int


def sweep(
    overrides: Sequence[str] = (),
    axes: Sequence[str] = (),
    seeds: int | Sequence[int] = 1,
    variants: Mapping[str, Sequence[str]] | None = None,
    *,
    load: Mapping[str, Any] | None = None,
    folder: str | Path | None = None,
    config_dir: str | Path | None = None,
    n_jobs: int = -1,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Run every combination of variants, axes and seeds, and return a table with one row for each.

    Args:
        overrides: what holds for all, as on the command line; ``steady=true`` unless they say otherwise.
        axes: ``["gpu=h100-sxm,l40s", "workload.arrivals.rate_rps=1,2,4"]``: keys with their values.
        seeds: how many seeds, from 0 on, or which.
        variants: overrides by the name of the variant, for what goes together.
        load: ``{"key": "workload.arrivals.rate_rps", "points": 12}`` for an axis that finds its values.
        folder: where to keep what has been run, so that a sweep goes on where it was stopped.
        config_dir: a folder with options of your own, laid out as ``conf/``.
        n_jobs: how many processes; -1 for as many as there are cores. The table does not depend on it.
        progress: called with the number of points that are done and the most there will be.

    Raises:
        ConfigError: listing everything that is wrong. A point that does not run is a row with its error.

    """
    named = variants if isinstance(variants, Mapping) else None
    given = {
        "overrides": _as_list(overrides),
        "axes": _as_list(axes),
        "variants": variants if named is None else {name: _as_list(own) for name, own in named.items()},
        "seeds": _as_list(seeds),
        "load": dict(load) if isinstance(load, Mapping) else load,
    }
    study = _checked(given, n_jobs)
    own = None if config_dir is None else Path(config_dir)
    place = None if folder is None else Path(folder)
    return frame_of(run_study(study, Groups.of(own), own, place, n_jobs, progress).table)


def run_study(
    study: Study,
    groups: Groups,
    config_dir: Path | None = None,
    folder: Path | None = None,
    n_jobs: int = -1,
    progress: Progress | None = None,
) -> Swept:
    """Run what is missing of a study, and return its table; see :func:`sweep`.

    A folder gets ``sweep.parquet``, ``study.yaml`` and what is needed to go on after a stop.

    Raises:
        ConfigError: listing everything that is wrong with the study.

    """
    plan = Plan(study, grid(study, groups), groups, config_dir)
    finished = None if folder is None else Finished(folder, study, groups)
    if folder is not None and finished is not None and finished.holds():
        table = read_arrow(folder)
        _write_study(study, folder)
        return Swept(table, table.num_rows)
    with Store(folder) as store:
        work = Work(plan, store, n_jobs, progress)
        table = _table(plan, work.outcomes(), config_dir)
    if folder is not None and finished is not None:
        finished.remove()
        write_table(table, folder)
        _write_study(study, folder)
        (folder / STUDY).touch()  # as new as the table, so that the page is drawn again
        if not work.unfinished:
            finished.write(plan.files)
    return Swept(table, work.known)


def _write_study(study: Study, folder: Path) -> None:
    """Write ``study.yaml``, unless it is there as it would be written."""
    said = yaml.safe_dump({"name": folder.name, **study.as_dict()}, sort_keys=False, allow_unicode=True)
    path, content = folder / STUDY, said.encode()
    if not (path.is_file() and path.read_bytes() == content):
        with in_one_go(path) as beside:
            beside.write_bytes(content)


def _checked(given: Mapping[str, Any], n_jobs: Any) -> Study:
    """Return the study that the arguments of a sweep describe.

    Raises:
        ConfigError: listing everything that is wrong with it and with the number of processes.
    """
    found: list[Problem] = []
    workers = _as_list(n_jobs)
    if type(workers) is not int or not (workers >= 1 or workers == -1):
        found.append(Problem("n_jobs", n_jobs, "must be a whole number, at least 1, or -1: one per core"))
    try:
        study = study_of(given)
    except ConfigError as error:
        raise ConfigError([*error.problems, *found]) from error
    if found:
        raise ConfigError(found)
    return study


def _as_list(given: Any) -> Any:
    """Return any sequence as a list and integers of numpy as Python's; the rest is for the check to judge."""
    if isinstance(given, np.integer):
        return int(given)
    if isinstance(given, str) or not isinstance(given, Iterable):
        return given
    return [int(each) if isinstance(each, np.integer) else each for each in given]


def _table(plan: Plan, outcomes: Sequence[tuple[Point, Outcome]], config_dir: Path | None) -> pa.Table:
    load = plan.study.load
    rows = [_row(number, plan, config_dir, *each) for number, each in enumerate(outcomes)]
    return table_of(rows, [*plan.grid.keys, *([load.key] if load else [])])


def _row(number: int, plan: Plan, config_dir: Path | None, point: Point, outcome: Outcome) -> dict[str, Any]:
    configuration, load = plan.grid.configurations[point.configuration], plan.study.load
    return {
        "point": number,
        "variant": configuration.variant,
        **dict(zip(plan.grid.keys, configuration.values, strict=True)),
        **({load.key: point.load} if load else {}),
        "seed": point.seed,
        "status": outcome.status,
        "error": outcome.error,
        "command": point.command(config_dir),
        "hash": point.hash,
        **outcome.figures,
    }
