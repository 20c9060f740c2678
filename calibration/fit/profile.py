"""A profile: every fit of one GPU and engine, and the YAML file that says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Any

import pandas as pd
from joblib import Parallel, delayed

from calibration.conf import gpu_named
from calibration.fit import all_reduce, decode_attention, gemm, moe, prefill_attention, quantise
from calibration.fit.errors import Errors
from calibration.fit.job import ALL, Fitted, Job
from calibration.fit.projections import projection_errors
from calibration.fit.split import FOLDS, SPLITS
from calibration.sources import aiconfigurator
from calibration.sources.wheel import PACKAGE, Wheel
from servesim.cost.gpu import Gpu

Reader = Callable[[Wheel, str, str], pd.DataFrame | None]
Maker = Callable[[Gpu, pd.DataFrame], Iterator[Job]]

#: Each operation: who reads its table, and who makes fits of it.
OPERATIONS: dict[str, tuple[Reader, Maker]] = {
    "gemm": (aiconfigurator.gemm, gemm.jobs),
    "decode_attention": (aiconfigurator.decode_attention, decode_attention.jobs),
    "prefill_attention": (aiconfigurator.prefill_attention, prefill_attention.jobs),
    "all_reduce": (aiconfigurator.all_reduce, all_reduce.jobs),
    "moe": (aiconfigurator.moe, moe.jobs),
    "quantise": (aiconfigurator.quantise, quantise.jobs),
}

DATASHEET = ("hbm_bytes_per_s", "bf16_flops_per_s", "fp8_flops_per_s", "nvlink_bytes_per_s")

WIDTH = 110

_BLOCKS = {
    "datasheet": "The figures (conf/gpu) that the rates below are fractions of.",
    "gemm": "Dense products by format: servesim/cost/kernels/gemm.py says what each coefficient is.",
    "decode_attention": "Decode attention by KV format: servesim/cost/kernels/decode_attention.py.",
    "prefill_attention": "Prefill attention by format: servesim/cost/kernels/prefill_attention.py.",
    "all_reduce": "All-reduce by number of GPUs: servesim/cost/kernels/all_reduce.py.",
    "moe": "Experts by format: servesim/cost/kernels/moe.py.",
    "quantise": "Quantisation of activations to FP8: servesim/cost/kernels/elementwise.py.",
    "ranges": (
        "What the fitted rows span: beyond it times are extrapolated, and where another engine's stand in."
    ),
    "provenance": "Where the rows are from, and which were held out (calibration/fit/split.py).",
    "errors": (
        "Errors predicted / measured - 1 in percent: of their size median, mean and p90; their mean (bias).\n"
        "# held_out: the coefficients above on the rows that they were not fitted to. splits: the mean over\n"
        f"# {SPLITS} such splits, each fitted anew; mdape_range, mape_range: the least and largest of them.\n"
        f"# whole_shapes: on shapes of which no row was fitted ({FOLDS} folds, or one shape at a time).\n"
        "# datasheet: the roofline on the held-out rows. subsets: parts of the rows, mean over the splits."
    ),
    "projections": (
        "Errors of the summed projections of a layer at TP 1, 2, 4 and 8 and 1 to 8,192 tokens, against the\n"
        "# sum of table entries (interpolated between shapes; most rows were fitted)."
    ),
}


@dataclass(frozen=True)
class Profile:
    """The fits of one GPU and engine, in the order of OPERATIONS."""

    gpu: Gpu
    engine: str
    package_version: str
    fits: list[Fitted]
    hashes: dict[str, str]

    @property
    def name(self) -> str:
        """The name of its file in ``conf/calibration``."""
        return f"{self.gpu.name}-{self.engine}"

    @property
    def engine_version(self) -> str:
        """The version of the engine whose kernels were timed."""
        return aiconfigurator.VERSIONS[self.gpu.name, self.engine]

    @property
    def command(self) -> str:
        """The command that writes the file."""
        return f"python -m calibration fit --gpu {self.gpu.name} --engine {self.engine}"

    def document(self) -> dict[str, Any]:
        """Return what the YAML file says, as plain values."""
        grouped = {
            operation: [fit for fit in self.fits if fit.job.operation == operation]
            for operation in OPERATIONS
        }
        grouped = {operation: fits for operation, fits in grouped.items() if fits}
        return {
            "kind": "profile",
            "name": self.name,
            "gpu": self.gpu.name,
            "engine": self.engine,
            "engine_version": self.engine_version,
            "datasheet": {name: getattr(self.gpu, name) for name in DATASHEET},
            **{
                operation: {fit.job.name: asdict(fit.form) for fit in fits}
                for operation, fits in grouped.items()
            },
            "ranges": {
                operation: {fit.job.name: _ranges(fit.job) for fit in fits}
                for operation, fits in grouped.items()
                if not any(self._is_borrowed(fit) for fit in fits)
            },
            "provenance": self._provenance(),
            "errors": {
                operation: {fit.job.name: _errors(fit) for fit in fits} | _pooled(fits)
                for operation, fits in grouped.items()
            },
            "projections": self._projections(grouped.get("gemm", [])),
        }

    def _is_borrowed(self, fit: Fitted) -> bool:
        """Tell whether the rows are another engine's, so that nothing is calibrated by them."""
        return bool((fit.job.rows.engine != self.engine).any())

    def text(self) -> str:
        """Return the YAML file."""
        lines = [f"# Kernel times of {self.engine} on {self.gpu.name}: written by `{self.command}`."]
        for key, value in self.document().items():
            if key in _BLOCKS:
                lines += ["", f"# {_BLOCKS[key]}"]
            lines += _lines(key, value)
        return "\n".join(lines) + "\n"

    def _projections(self, products: list[Fitted]) -> dict[str, Any]:
        return {
            fit.job.name: {
                model: asdict(errors) for model, errors in projection_errors(fit.form, self.gpu, fit.job.rows)
            }
            for fit in products
            if fit.job.name in ("bf16", "fp8")
        }

    def _provenance(self) -> dict[str, Any]:
        return {
            "package": PACKAGE,
            "package_version": self.package_version,
            "split": "BLAKE2b of the shape, byte 0 below 51 is held out",
            "tables": self.hashes,
        }


def fit_profiles(wheel: Wheel, names: Iterable[tuple[str, str]]) -> Iterator[Profile]:
    """Fit profiles by (GPU, engine), on all cores, and yield each when it is done.

    A profile has every operation of which the package has a usable table.
    """
    tasks = (delayed(_fitted)(name, job) for name in names for job in profile_jobs(wheel, *name))
    done = Parallel(n_jobs=-1, return_as="generator")(tasks)
    for (gpu, engine), named in groupby(done, key=itemgetter(0)):
        fits = [fit for _, fit in named]
        sources = sorted({source for fit in fits for source in fit.job.sources})
        hashes = {source: wheel.sha256(source) for source in sources}
        yield Profile(gpu_named(gpu), engine, wheel.version, fits, hashes)


def _fitted(name: tuple[str, str], job: Job) -> tuple[tuple[str, str], Fitted]:
    return name, job.fitted()


def profile_jobs(wheel: Wheel, gpu_name: str, engine: str) -> Iterator[Job]:
    """Yield the fits of a profile, none of them done yet."""
    gpu = gpu_named(gpu_name)
    for read, make in OPERATIONS.values():
        table = read(wheel, gpu_name, engine)
        if table is not None:
            sources = tuple(sorted(table.source.unique()))
            yield from (replace(job, sources=sources) for job in make(gpu, table))


def _ranges(job: Job) -> dict[str, list[int]]:
    """Return the least and largest of each size among the usable rows."""
    rows = job.rows[job.usable]
    return {name: [int(rows[name].min()), int(rows[name].max())] for name in job.ranges}


def _errors(fit: Fitted) -> dict[str, Any]:
    """Return the error table of a fit."""
    excluded = 0 if fit.job.excluded is None else int(fit.job.excluded.sum())
    subsets = sorted({name for scores in fit.splits for name in scores} - {ALL})
    return {
        "rows": len(fit.job.rows),
        **({"rows_below_the_floor": excluded} if excluded else {}),
        "held_out": asdict(fit.held_out),
        **(_split_figures(fit) if fit.job.is_split else {}),
        "whole_shapes": asdict(fit.whole_shapes),
        "datasheet": asdict(fit.roofline),
        **({"subsets": {name: asdict(fit.mean(name)) for name in subsets}} if subsets else {}),
    }


def _split_figures(fit: Fitted) -> dict[str, Any]:
    ranges = {f"{figure}_range": list(fit.spread(figure)) for figure in ("mdape", "mape")}
    return {"splits": asdict(fit.mean(ALL)) | ranges}


def _pooled(fits: list[Fitted]) -> dict[str, Any]:
    """Return the errors of small tables taken together, each shape left out of its fit."""
    small = [fit for fit in fits if not fit.job.is_split]
    if len(small) < 2:
        return {}
    predicted = pd.concat([pd.Series(fit.left_out[0]) for fit in small])
    measured = pd.concat([pd.Series(fit.left_out[1]) for fit in small])
    return {"pooled": {"whole_shapes": asdict(Errors.of(predicted, measured))}}


def _lines(key: str, value: Any, indent: str = "") -> Iterator[str]:
    """Yield YAML: a mapping of plain values on one line where it fits, one key a line otherwise."""
    flat = not isinstance(value, dict) or not any(isinstance(each, dict) for each in value.values())
    line = f"{indent}{key}: {_flow(value)}"
    if not isinstance(value, dict) or (flat and len(line) <= WIDTH):
        yield line
        return
    yield f"{indent}{key}:"
    for name, each in value.items():
        yield from _lines(name, each, indent + "  ")


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_flow(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, float):
        mantissa, e, exponent = f"{value:.6g}".partition("e")
        return (mantissa if "." in mantissa else f"{mantissa}.0") + e + exponent
    return "null" if value is None else str(value)
