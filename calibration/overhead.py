"""The engine terms of ``conf/engine_overhead``, fitted on measured closed-loop runs.

``python -m calibration overhead --data DIR``: for each engine, part of the runs is fitted and the rest held
out. Kernel times are the profile's, the steady state is in closed form; only what the engine adds is fitted.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from scipy.optimize import least_squares

from calibration.conf import CONF, gpu_named, model_named
from calibration.fit.errors import Errors
from calibration.fit.job import Array
from calibration.sources.runs import read_runs
from calibration.terms import number, provenance
from servesim.cost.fitted import FittedStepTime
from servesim.cost.memory import memory_sheet
from servesim.cost.overhead import EngineOverhead
from servesim.cost.profile import Profile
from servesim.cost.steady import steady

#: The runs below the folder of measured data, and where they are from.
CLOSED_LOOP = Path("serving", "h100_closed_loop.csv")
COLUMNS = ["backend", "backend_version", "tp_size", "isl", "osl", "concurrency", "silicon_tpot_ms"]
GPU = "h100-sxm"

#: Limits of a step, which the runs do not state: defaults of ``vllm serve`` and ``trtllm-serve`` on an H100.
MAX_NUM_BATCHED_TOKENS, MAX_NUM_SEQS = 8192, 256

#: Relative errors beyond this count linearly.
ROBUST = 0.05

#: The terms: their names, a scale for the search, and their least value.
TERMS = {"step_s": (1e-3, 0.0), "sequence_s": (1e-5, 0.0), "prefill_factor": (1.0, 1.0)}

_FILE = """\
# {engine} {version}: what the engine adds to the time of its kernels (servesim/cost/overhead.py).
# Written by `python -m calibration overhead`: fitted on measured runs, not measured one by one.
name: {name}
engine: {engine}
engine_version: "{version}"

# Host time of a step, s: scheduling, preparing inputs, launches, sampling.
step_s: {step_s}

# Host time per sequence of a step, s.
sequence_s: {sequence_s}

# What prefill tokens take, in units of their kernels' time.
prefill_factor: {prefill_factor}

# Model and GPU of the runs; the terms are taken over to every other.
model: {model}
gpu: {gpu}

# Sequences of a step that the fitted runs had: the host's time of more is extrapolated.
ranges:
  sequences: [{fewest}, {most}]

# What was fitted and what held out; errors of the mean time per output token in percent.
{provenance}"""


@dataclass(frozen=True)
class Runs:
    """The runs of one engine version; those whose ``column`` is ``held_out`` are not fitted."""

    name: str
    backend: str
    model: str
    column: str
    held_out: int


RUNS = (
    Runs("vllm-0.12", "vllm", "qwen3-32b", "tp_size", 4),
    Runs("trtllm-1.0", "trtllm", "llama3.1-8b", "isl", 2048),
)


def fit_overheads(data: Path, out: Path = CONF / "engine_overhead") -> list[Path]:
    """Fit every engine of RUNS, write its file, and return the files."""
    out.mkdir(parents=True, exist_ok=True)
    table = read_runs(data, CLOSED_LOOP, COLUMNS)
    written = []
    for runs in RUNS:
        rows = table[table.backend == runs.backend]
        path = out / f"{runs.name}.yaml"
        path.write_text(Fit.of(runs, rows).text())
        written.append(path)
    return written


@dataclass(frozen=True)
class Fit:
    """The fitted terms of an engine, with the parts of each run's TPOT.

    ``points`` are the runs whose KV fits. Their TPOT is ``kernels_s`` + ``parts`` . (terms - least terms):
    the closed form is linear in the terms.
    """

    runs: Runs
    version: str
    profile: Profile
    points: pd.DataFrame
    kernels_s: Array
    parts: Array
    terms: Array

    @classmethod
    def of(cls, runs: Runs, rows: pd.DataFrame) -> Fit:
        """Fit the terms to the runs that are not held out."""
        profile = profile_named(f"{GPU}-{runs.backend}")
        points = rows[[_kv_fits(runs.model, row) for row in rows.itertuples()]]
        kernels_s, *shifted = (
            np.array([_tpot(profile, runs.model, terms, row) for row in points.itertuples()])
            for terms in _probes()
        )
        parts = np.array([tpot_s - kernels_s for tpot_s in shifted]).T
        fitted = (points[runs.column] != runs.held_out).to_numpy()
        measured = points.silicon_tpot_ms.to_numpy() / 1e3
        terms = _least_error(kernels_s[fitted], parts[fitted], measured[fitted])
        version = str(rows.backend_version.iloc[0])
        return cls(runs, version, profile, points, kernels_s, parts, terms)

    def errors(self, held_out: bool, *, kernels_alone: bool = False) -> Errors:
        """Return the errors of TPOT on the runs that were fitted, or on those that were not."""
        chosen = (self.points[self.runs.column] == self.runs.held_out).to_numpy() == held_out
        terms = np.zeros(len(TERMS)) if kernels_alone else self.terms
        predicted = self.kernels_s + self.parts @ terms
        return Errors.of(predicted[chosen], self.points.silicon_tpot_ms.to_numpy()[chosen] / 1e3)

    def text(self) -> str:
        """Return the YAML file."""
        scaled = {
            name: number(least + scale * term)
            for (name, (scale, least)), term in zip(TERMS.items(), self.terms, strict=True)
        }
        users = self.points.concurrency[self.points[self.runs.column] != self.runs.held_out]
        return _FILE.format(
            name=self.runs.name,
            engine=self.runs.backend,
            version=self.version,
            model=self.runs.model,
            gpu=GPU,
            fewest=int(users.min()),
            most=int(users.max()),
            provenance=provenance(self._provenance()),
            **scaled,
        )

    def _provenance(self) -> dict[str, Any]:
        runs = self.runs
        return {
            "runs": f"{len(self.points)} closed-loop runs of {runs.model} on {GPU} whose KV fits",
            "source": "aiconfigurator-core 0.12.0 (Apache-2.0), client protocol not stated",
            "profile": self.profile.name,
            "split": f"{runs.column} = {runs.held_out} held out, the others fitted",
            "fitted": asdict(self.errors(False)),
            "held_out": asdict(self.errors(True)),
            "held_out_kernels_alone": asdict(self.errors(True, kernels_alone=True)),
        }


@cache
def profile_named(name: str) -> Profile:
    """Return a profile of ``conf/calibration``."""
    said = yaml.safe_load((CONF / "calibration" / f"{name}.yaml").read_text())
    return Profile(**{key: value for key, value in said.items() if key != "kind"})


def _probes() -> list[tuple[float, ...]]:
    """Return the least terms, and those with one of them raised by its scale."""
    least = tuple(low for _, low in TERMS.values())
    scales = [scale for scale, _ in TERMS.values()]
    return [least, *((*least[:i], least[i] + scale, *least[i + 1 :]) for i, scale in enumerate(scales))]


def _least_error(kernels_s: Array, parts: Array, measured: Array) -> Array:
    """Return the terms, in units of their scales, with the least relative error; robust, and not negative."""

    def residuals(terms: Array) -> Array:
        return (kernels_s + parts @ terms) / measured - 1

    start = np.full(len(TERMS), 0.5)
    return least_squares(residuals, start, bounds=(0, 100), loss="soft_l1", f_scale=ROBUST).x


def _tpot(profile: Profile, model: str, terms: tuple[float, ...], run: Any) -> float:
    """Return the mean time per output token of a run (s)."""
    return steady(
        _step_time(profile.name, model, int(run.tp_size), terms),
        concurrency=int(run.concurrency),
        input_tokens=int(run.isl),
        output_tokens=int(run.osl),
        max_num_batched_tokens=MAX_NUM_BATCHED_TOKENS,
    ).tpot_s


@cache
def _step_time(profile: str, model: str, gpus: int, terms: tuple[float, ...]) -> FittedStepTime:
    return profile_named(profile).step_time(
        model_named(model),
        gpu_named(GPU),
        gpus,
        "auto",
        max_num_seqs=MAX_NUM_SEQS,
        max_num_batched_tokens=MAX_NUM_BATCHED_TOKENS,
        overhead=EngineOverhead("", "", "", *terms),
    )


def _kv_fits(model: str, run: Any) -> bool:
    """Tell whether the KV of all requests of a run fits at once, at vLLM's gpu_memory_utilization of 0.9."""
    sheet = memory_sheet(
        model_named(model),
        gpu_named(GPU),
        int(run.tp_size),
        gpu_memory_utilization=0.9,
        kv_cache_dtype="auto",
        block_size=16,
        max_num_seqs=MAX_NUM_SEQS,
        max_num_batched_tokens=MAX_NUM_BATCHED_TOKENS,
    )
    return bool(run.concurrency * (run.isl + run.osl) <= sheet.kv_tokens)
