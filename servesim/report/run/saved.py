"""A run as it was saved: its summary, its tables, and its pools."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from servesim.check import ConfigError, Problem
from servesim.cost.gpu import Gpu
from servesim.report.run.shape import summary_problems, table_problems, without_requests
from servesim.results.result import Result
from servesim.screen.hardware import pools as described_pools

_FILES = ("summary.json", "requests.parquet", "steps.parquet")


@dataclass(frozen=True)
class Pool:
    """What the drawings need to know of a pool; ``peak_flops_per_s`` is that of the weights' format."""

    role: str
    gpu: Gpu
    replicas: int
    first_replica: int
    tensor_parallel_size: int
    kv_blocks: int
    peak_flops_per_s: float

    @property
    def gpus(self) -> int:
        """GPUs of the whole pool."""
        return self.replicas * self.tensor_parallel_size

    @property
    def title(self) -> str:
        """What the pool is called in a legend."""
        return "all replicas" if self.role == "serve" else f"{self.role} pool"


@dataclass(frozen=True)
class Run:
    """The summary, and the tables ``requests`` and ``steps`` with the columns of a run folder's files.

    ``steps`` has two columns more: ``seconds``, the length of a leap, and ``end_s``.
    """

    summary: Mapping[str, Any]
    requests: pd.DataFrame
    steps: pd.DataFrame

    @classmethod
    def of(cls, result: Result) -> Run:
        """Return the run of a result."""
        return cls(result.summary, result.requests, with_ends(result.steps))

    @classmethod
    def read(cls, folder: Path) -> Run:
        """Return the run that a folder holds.

        Raises:
            ConfigError: a file is missing, cannot be read, or is not as a run of this version leaves it.
        """
        if not folder.is_dir():
            raise ConfigError([Problem(str(folder), None, "there is no such folder")])
        runs = sorted(
            int(each.parent.name) for each in folder.glob("[0-9]*/summary.json") if each.parent.name.isdigit()
        )
        if runs and not (folder / "summary.json").is_file():
            held = f"holds the runs {runs[0]} to {runs[-1]}; name one: {folder / str(runs[0])}"
            raise ConfigError([Problem("", str(folder), held)])
        missing = [name for name in _FILES if not (folder / name).is_file()]
        if missing:
            raise ConfigError(
                [Problem(str(folder / name), None, "there is no such file") for name in missing]
            )
        found: list[Problem] = []
        summary, requests, steps = (_read(folder / name, found) for name in _FILES)
        if not found:
            found += without_requests(summary, folder / "summary.json")
        if found:
            raise ConfigError(found)
        return cls(summary, requests, with_ends(steps))

    @cached_property
    def pools(self) -> list[Pool]:
        """The pools, in the order of their replicas."""
        scenario, found, first = self.summary["scenario"], [], 0
        for role, said in described_pools(scenario).items():
            figures = said["gpu"] or scenario["gpu"]
            gpu = Gpu(**{key: value for key, value in figures.items() if key != "kind"})
            found.append(
                Pool(
                    role,
                    gpu,
                    said["replicas"],
                    first,
                    said["tensor_parallel_size"],
                    self.summary["memory"][role]["kv_blocks"],
                    gpu.peak_flops(scenario["model"]["weights_dtype"]),
                )
            )
            first += said["replicas"]
        return found

    @property
    def span(self) -> tuple[float, float]:
        """When the first request was sent, and when the run was over, in seconds; (0, 0) without requests."""
        if self.requests.empty:
            return 0.0, 0.0
        start_s = float(self.requests.sent_s.min())
        return start_s, start_s + self.summary["duration_s"]

    def steps_of(self, pool: Pool) -> pd.DataFrame:
        """Return the leaps of a pool's replicas."""
        last = pool.first_replica + pool.replicas - 1
        return self.steps[self.steps.replica.between(pool.first_replica, last)]


def with_ends(steps: pd.DataFrame) -> pd.DataFrame:
    """Return leaps with their length: the sum of n steps, the j-th of which is first + j x increment long."""
    count = steps.steps.to_numpy()
    seconds = count * steps.first_step_s + steps.increment_s * (count * (count - 1) / 2)
    return steps.assign(
        seconds=seconds, end_s=steps.start_s + seconds, replica=steps.replica.astype(np.int64)
    )


def _read(path: Path, found: list[Problem]) -> Any:
    """Return what a file of a run holds; what is wrong with it is added to ``found``."""
    try:
        if path.suffix == ".json":
            held = json.loads(path.read_text(encoding="utf-8"))
            wrong = summary_problems(held)
        else:
            held = pd.read_parquet(path)
            wrong = table_problems(path.stem, held)
        found += (Problem(str(path), None, f"is not of a run of this version: {each}") for each in wrong)
    except (ValueError, RecursionError) as error:  # pyarrow's errors are ValueErrors
        found.append(Problem(str(path), None, f"cannot be read: {' '.join(str(error).split())}"))
        return None
    return held
