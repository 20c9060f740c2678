"""The rows of a profile's tables beside what its forms and the datasheet say of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from calibration.fit.job import Job
from calibration.fit.profile import profile_jobs
from calibration.fit.split import held_out
from calibration.report.operations import PAGE_OPERATIONS, Operation
from calibration.sources.tidy import SourceError
from calibration.sources.wheel import Wheel
from servesim.cost.profile import profile_problems
from servesim.cost.profile_content import FORMS

Said = dict[str, Any]


def profiles(folder: Path) -> list[Said]:
    """Return what the profiles of a folder say, by name.

    Raises:
        SourceError: where there is none, or listing the files that are no YAML and what is wrong with others.
    """
    fitted, problems = list[Said](), list[str]()
    for path in sorted(folder.glob("*.yaml")):
        try:
            said = yaml.safe_load(path.read_bytes())
        except yaml.YAMLError as problem:
            problems.append(f"{path}: is not YAML: {' '.join(str(problem).split())}")
            continue
        if not isinstance(said, dict):
            problems.append(f"{path}: must be keys with values")
        elif said.get("kind") == "profile":
            values = {key: value for key, value in said.items() if key != "kind"}
            problems += [f"{path}: {problem}" for problem in profile_problems(values, "")]
            fitted.append(said)
    if problems:
        raise SourceError("\n".join(problems))
    if not fitted:
        raise SourceError(f"{folder}: there is no profile")
    return fitted


def scored(wheel: Wheel, said: Said) -> dict[str, pd.DataFrame]:
    """Return by operation the usable rows of a profile's tables.

    Columns: ``format`` (the name of the fit), ``shape`` (as text), ``size``, ``across`` and ``up`` (the sizes
    that errors are shown by), ``measured_s``, ``predicted_s``, ``datasheet_s``, ``flops`` and ``moved_bytes``
    (per GPU; FLOPs are 0 where only bytes count), and ``unseen``: the row was not fitted.

    Raises:
        SourceError: the profile was fitted to another version of the package.
    """
    fitted_to = said["provenance"]["package_version"]
    if fitted_to != wheel.version:
        raise SourceError(
            f"{said['name']}: fitted to {said['provenance']['package']} {fitted_to}, "
            f"but {wheel.version} is installed"
        )
    tables: dict[str, list[pd.DataFrame]] = {}
    for job in profile_jobs(wheel, said["gpu"], said["engine"]):
        if job.name in said.get(job.operation, {}):
            tables.setdefault(job.operation, []).append(_rows(job, said))
    return {operation: pd.concat(parts, ignore_index=True) for operation, parts in tables.items()}


def _rows(job: Job, said: Said) -> pd.DataFrame:
    operation = PAGE_OPERATIONS[job.operation]
    rows = job.rows[job.usable]
    form = FORMS[job.operation](**said[job.operation][job.name])
    flops, moved = _work(operation, job, rows)
    across, up = operation.regions or (operation.size, operation.size)
    return pd.DataFrame(
        {
            "format": format_name(job.name),
            "shape": _shapes(rows, job.shape),
            "size": operation.size.of(rows).to_numpy(),
            "across": across.of(rows).to_numpy(),
            "up": up.of(rows).to_numpy(),
            "measured_s": rows.seconds.to_numpy(),
            "predicted_s": job.predict(form, rows),
            "datasheet_s": job.roofline(rows),
            "flops": flops,
            "moved_bytes": moved,
            "unseen": held_out(rows, job.shape)[:, 0] if job.is_split else False,
        }
    )


def _work(operation: Operation, job: Job, rows: pd.DataFrame) -> tuple[Any, Any]:
    if operation.work is not None:
        return operation.work(job, rows)
    assert operation.moved is not None
    return np.zeros(len(rows)), operation.moved(job, rows)


def _shapes(rows: pd.DataFrame, columns: tuple[str, ...]) -> list[str]:
    """Return each row's shape as text; what is 0, such as no window, is left out."""
    names = [name.replace("_", " ") for name in columns]
    return [
        ", ".join(f"{name} {_size(value)}" for name, value in zip(names, shape, strict=True) if value != 0)
        for shape in zip(*(rows[name] for name in columns), strict=True)
    ]


def _size(value: Any) -> str:
    return str(value) if isinstance(value, str) else f"{value:,}"


def format_name(name: str) -> str:
    """Return the name of a fit as a reader would put it: "2 GPUs", "bf16, KV fp8"."""
    kind, _, gpus = name.partition("gpus_")
    return f"{gpus} GPUs" if not kind else name.replace("_kv_", ", KV ").replace("_", " ")


def judged(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that a fit is judged by: those it has not seen; all, where it was fitted to all."""
    split = rows.groupby("format").unseen.transform("any")
    return rows[rows.unseen | ~split]
