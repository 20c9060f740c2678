"""The weights of ``conf/board_power``, fitted on the measured power of static batches.

``python -m calibration power --data DIR``: the runs of one tensor parallel size are held out. What is fitted
is what the simulator evaluates (:class:`BoardPower`), at the work that it counts (:class:`Work`); how long
the prompt and the token phase took is measured, so that no step time has a part in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import least_squares

from calibration.conf import CONF, gpu_named, model_named
from calibration.fit.errors import Errors
from calibration.fit.job import Array
from calibration.sources.runs import read_runs
from calibration.sources.tidy import SourceError
from calibration.terms import number, provenance
from servesim.cost.power import BoardPower
from servesim.cost.step_time import GraphSizes
from servesim.cost.work import Work

#: The runs below the folder of measured data, and what they were of.
STATIC_BATCHES = Path("serving", "splitwise_llama2_70b_static_batch.csv")
HARDWARE, GPU, MODEL = "a100-80gb", "a100-sxm-80gb", "llama2-70b"

#: What makes a run; each was repeated, with one figure of power for all its repetitions.
RUN = ["tensor_parallel", "prompt_size", "batch_size", "token_size"]
MEASURED = ["prompt_time", "token_time", "average_power"]

#: Longer prompts are left out: their mean power falls although more of the run is prefill, down to a GPU's at
#: rest (69 to 73 W) for 8,192 tokens, so the samples cover more than the run.
LONGEST_PROMPT = 2048

HELD_OUT = 4

#: Where the search starts: the limit of the board makes kinks, and so local minima.
STARTS = ((1.0, 1.0), (2.0, 1.0), (3.0, 1.0), (4.0, 1.0))
LARGEST_WEIGHT = 20.0

_FILE = """\
# What the shares of peak weigh in board power (servesim/cost/power.py).
# Written by `python -m calibration power`: fitted on the mean power of runs on A100s.
name: {name}
compute_weight: {compute}
bandwidth_weight: {bandwidth}

# What was fitted and what held out; errors of the mean power of a run in percent.
{provenance}"""


def fit_power(data: Path, out: Path = CONF / "board_power") -> list[Path]:
    """Fit the weights, write their file, and return it."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / "a100.yaml"
    path.write_text(Fit.of(static_batches(data), HELD_OUT).text(path.stem))
    return [path]


def power_table(data: Path) -> Iterator[str]:
    """Yield the weights and errors for each tensor parallel size that could be held out."""
    points = static_batches(data)
    yield "| held out | compute weight | bandwidth weight | fitted | held out | held out, weights of 1 |"
    yield "|---|---|---|---|---|---|"
    for size in sorted(points.tensor_parallel.unique()):
        fit = Fit.of(points, size)
        weights = (fit.weights.compute_weight, fit.weights.bandwidth_weight)
        errors = (fit.errors(False), fit.errors(True), fit.errors(True, weights_of_1=True))
        yield f"| TP {size} | {' | '.join(map(number, weights))} | {' | '.join(map(str, errors))} |"


def static_batches(data: Path) -> pd.DataFrame:
    """Return one row per run whose power was measured: medians of its repetitions, times in s.

    ``power_w`` is the mean board power of a GPU; the file has it as a fraction of the GPU's limit, with 0
    for none.

    Raises:
        SourceError: where the file or a column is missing, or all runs are of one tensor parallel size.
    """
    table = read_runs(data, STATIC_BATCHES, [*RUN, *MEASURED, "hardware"])
    measured = (table.hardware == HARDWARE) & (table.average_power > 0)
    kept = table[measured & (table.prompt_size <= LONGEST_PROMPT)]
    points = kept.groupby(RUN, as_index=False)[MEASURED].median()
    if points.tensor_parallel.nunique() < 2:
        raise SourceError(
            f"{data / STATIC_BATCHES}: needs measured runs of two tensor parallel sizes or more"
        )
    return points.assign(
        prompt_s=points.prompt_time / 1e3,
        token_s=points.token_time / 1e3,
        power_w=points.average_power * gpu_named(GPU).max_w,
    )


@dataclass(frozen=True)
class Phases:
    """The prompt and the token phase of runs, as arrays of (run, phase): shares of peak, and seconds."""

    compute: Array
    bandwidth: Array
    seconds: Array

    @classmethod
    def of(cls, points: pd.DataFrame) -> Phases:
        """Count the work of each phase, over the time that it took."""
        shares = np.array([_shares(run) for run in points.itertuples()])
        return cls(*shares.transpose(2, 0, 1))

    def power_w(self, weights: BoardPower) -> Array:
        """Return the mean power of each run."""
        gpu = gpu_named(GPU)
        joules = weights.energy_joules(self.compute, self.bandwidth, self.seconds, gpu)
        return joules.sum(axis=1) / self.seconds.sum(axis=1)


@dataclass(frozen=True)
class Fit:
    """Fitted weights; the runs of the tensor parallel size ``held_out`` have no part in them."""

    points: pd.DataFrame
    held_out: int
    phases: Phases
    weights: BoardPower

    @classmethod
    def of(cls, points: pd.DataFrame, held_out: int) -> Fit:
        """Fit the weights to the runs that are not held out: least squares on log error."""
        fitted = points[points.tensor_parallel != held_out]
        phases, measured_w = Phases.of(fitted), fitted.power_w.to_numpy()

        def residuals(weights: Array) -> Array:
            return np.log(phases.power_w(BoardPower("", *weights)) / measured_w)

        searches = [least_squares(residuals, start, bounds=(0, LARGEST_WEIGHT)) for start in STARTS]
        best = min(searches, key=lambda search: search.cost)
        return cls(points, held_out, Phases.of(points), BoardPower("fitted", *map(float, best.x)))

    def errors(self, held_out: bool, *, weights_of_1: bool = False) -> Errors:
        """Return the errors of mean power on the runs that were fitted, or on those that were not."""
        chosen = (self.points.tensor_parallel == self.held_out).to_numpy() == held_out
        predicted_w = self.phases.power_w(BoardPower() if weights_of_1 else self.weights)
        return Errors.of(predicted_w[chosen], self.points.power_w.to_numpy()[chosen])

    def text(self, name: str) -> str:
        """Return the YAML file."""
        return _FILE.format(
            name=name,
            compute=number(self.weights.compute_weight),
            bandwidth=number(self.weights.bandwidth_weight),
            provenance=provenance(self._provenance()),
        )

    def _provenance(self) -> dict[str, Any]:
        return {
            "runs": f"{len(self.points)} static batches of {MODEL} on {GPU}, prompts up to {LONGEST_PROMPT}",
            "source": "Mutinifni/splitwise-sim 8f99e7dc, data/perf_model.csv (MIT)",
            "split": f"tensor_parallel = {self.held_out} held out, the others fitted",
            "fitted": asdict(self.errors(False)),
            "held_out": asdict(self.errors(True)),
            "held_out_weights_of_1": asdict(self.errors(True, weights_of_1=True)),
        }


def _shares(run: Any) -> list[tuple[float, float, float]]:
    """Return (compute share, bandwidth share, seconds) of the prompt and of the token phase of a run.

    The first token leaves with the prompt, each further one with a step.
    """
    gpus, prompt, sequences = int(run.tensor_parallel), int(run.prompt_size), int(run.batch_size)
    further = int(run.token_size) - 1
    read = sequences * further * (prompt + (further + 1) / 2)
    phases = {
        "steps": (1, further),
        "tokens": (sequences * prompt, sequences * further),
        "rows": (sequences, sequences * further),
        "pairs": (sequences * prompt * (prompt + 1) / 2, read),
        "context": (sequences * prompt, read),
    }
    unpadded = GraphSizes(max_num_seqs=1, max_num_batched_tokens=1)
    work = Work(model_named(MODEL), gpus, "auto", unpadded)
    flops, hbm_bytes = work.of_runs(**{name: np.array(values) for name, values in phases.items()})
    gpu = gpu_named(GPU)
    seconds = np.array([run.prompt_s, further * run.token_s])
    compute = flops / (seconds * gpus * gpu.bf16_flops_per_s)
    bandwidth = hbm_bytes / (seconds * gpus * gpu.hbm_bytes_per_s)
    return list(zip(compute, bandwidth, seconds, strict=True))
