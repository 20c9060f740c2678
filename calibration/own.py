"""A profile of one's own measurements: ``python -m calibration fit --measurements DIR``."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from calibration.conf import CONF, MULTIPROCESSORS, gpu_named
from calibration.fit.job import Fitted, Job
from calibration.fit.profile import OPERATIONS, Profile
from calibration.fit.rows import FEWEST_ROWS
from calibration.sources import measurements
from calibration.sources.tidy import SourceError
from servesim.cost.profile_content import NEEDED

Tables = dict[str, pd.DataFrame]


@dataclass(frozen=True)
class OwnProfile(Profile):
    """A profile fitted to the tables of ``folder``; ``machine`` is what they say of GPU and libraries."""

    folder: Path
    machine: dict[str, str]

    @property
    def engine_version(self) -> str:
        """The version that the tables name."""
        return self.package_version

    @property
    def command(self) -> str:
        """The command that writes the file."""
        return "python -m calibration fit --measurements DIR"

    def _projections(self, products: list[Fitted]) -> dict[str, Any]:
        """Return nothing: own tables are no grid of shapes to interpolate in."""
        return {}

    def _provenance(self) -> dict[str, Any]:
        return super()._provenance() | {"package": "own measurements"} | self.machine


def fit_own(folder: Path) -> OwnProfile:
    """Fit every operation of which ``folder`` has enough rows.

    Raises:
        SourceError: where the tables are of no GPU of ``conf/gpu``, or of several machines, or where there
            are too few rows of an operation that no step can do without.
    """
    tables = measurements.read(folder)
    if not tables:
        raise SourceError(f"{folder}: holds no measurements (<operation>.parquet)")
    gpu_name, engine, version = _one_machine(folder, tables)
    gpu = gpu_named(gpu_name)
    jobs = list(_jobs(tables, gpu_name))
    problems = [
        f"{operation}: no fit in bf16, of {len(tables.get(operation, ()))} rows; "
        f"{FEWEST_ROWS} of several shapes are needed"
        for operation in NEEDED
        if (operation, "bf16") not in {(job.operation, job.name) for job in jobs}
    ]
    if problems:
        raise SourceError("\n".join(f"{folder}: {problem}" for problem in problems))
    paths = [folder / f"{operation}.parquet" for operation in dict.fromkeys(job.operation for job in jobs)]
    hashes = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
    fits = [job.fitted() for job in jobs]
    return OwnProfile(gpu, engine, version, fits, hashes, folder, _machine(paths))


def unused(profile: OwnProfile) -> Iterator[str]:
    """Yield, for each table of a profile's folder, how many rows went into no fit, and why that may be."""
    for operation, rows in measurements.read(profile.folder).items():
        left = len(rows) - sum(len(fit.job.rows) for fit in profile.fits if fit.job.operation == operation)
        if left:
            few = f"fewer than {FEWEST_ROWS} of a format, or of a kind that steps do not use"
            why = few if operation in OPERATIONS else "profiles have no form for them"
            yield f"{operation}: {left} of {len(rows)} rows in no fit ({why})"


def _jobs(tables: Tables, gpu_name: str) -> Iterator[Job]:
    """Yield the fits that the tables have enough rows and whole shapes for."""
    for operation, (_, make) in OPERATIONS.items():
        if operation in tables:
            for job in make(gpu_named(gpu_name), tables[operation]):
                if len(job.rows[list(job.group)][job.usable].drop_duplicates()) > 1:
                    yield job


def _one_machine(folder: Path, tables: Tables) -> tuple[str, str, str]:
    """Return the GPU, engine and version that all tables are of."""
    both = pd.concat(
        table[["gpu", "engine", "engine_version"]] for table in tables.values()
    ).drop_duplicates()
    if len(both) > 1:
        found = "; ".join(" ".join(row) for row in both.itertuples(index=False))
        raise SourceError(f"{folder}: a profile is of one GPU and engine, the tables are of several: {found}")
    gpu_name, engine, version = both.iloc[0]
    if gpu_name not in MULTIPROCESSORS:
        known = ", ".join(sorted(path.stem for path in (CONF / "gpu").glob("*.yaml")))
        raise SourceError(f"{folder}: the tables are of {gpu_name}; profiles are fitted for {known}")
    return gpu_name, engine, version


def _machine(paths: list[Path]) -> dict[str, Any]:
    """Return what the files say of the machine and the kernels beyond the tidy columns, where they do."""
    tables = {path.stem: pd.read_parquet(path) for path in paths}

    def values(*names: str, column: str) -> str:
        said = (tables[name][column].dropna() for name in names if column in tables[name])
        return _quoted(", ".join(sorted({value for each in said for value in each})))

    machine = {name: values(*tables, column=name) for name in ("gpu_name", "driver", "cuda", "libraries")}
    kernels = {name: values(name, column="kernel") for name, table in tables.items() if "kernel" in table}
    return machine | {"kernels": kernels}


def _quoted(text: str) -> str:
    """Return text as a YAML string whatever is in it."""
    return "'" + text.replace("'", "''") + "'"
