"""The four projections of a layer as a step needs them: their sum, against the sum of table entries."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy.interpolate import RegularGridInterpolator

from calibration.conf import model_named
from calibration.fit.errors import Errors
from calibration.fit.gemm import LLM, TENSOR_PARALLEL_SIZES
from servesim.cost.gpu import Gpu
from servesim.cost.kernels.gemm import Gemm

#: Tokens per step, of those that the tables hold.
TOKENS = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)


def projection_errors(form: Gemm, gpu: Gpu, rows: pd.DataFrame) -> Iterator[tuple[str, Errors]]:
    """Yield, for each model, the errors of the summed projections over tensor parallel sizes and tokens.

    ``rows`` are the table's of one format, fitted ones included. Shapes between its entries are
    interpolated linearly on logarithmic scales.
    """
    table = _interpolation(rows)
    tokens = np.array([m for m in TOKENS if m in set(rows.m)], dtype=float)
    for name in LLM:
        predicted, measured = [], []
        for size in TENSOR_PARALLEL_SIZES:
            shapes = [(linear.outputs, linear.inputs) for linear in model_named(name).linears(size)]
            predicted.append(sum(form.seconds(gpu, tokens, n, k) for n, k in shapes))
            points = [np.log([(m, n, k) for m in tokens]) for n, k in shapes]
            measured.append(sum(np.exp(table(each)) for each in points))
        yield name, Errors.of(np.concatenate(predicted), np.concatenate(measured))


def _interpolation(rows: pd.DataFrame) -> RegularGridInterpolator:
    """Return log time over (log m, log n, log k), on the largest full grid of shapes."""
    cube = rows.assign(seconds=np.log(rows.seconds)).pivot_table(
        index=["n", "k"], columns="m", values="seconds"
    )
    grid = cube.stack(future_stack=True).unstack("k")
    rich = grid.loc[:, grid.notna().mean() > 0.5]
    values = rich.unstack("m").to_numpy().reshape(-1, len(rich.columns), len(cube.columns))
    n, k, m = rich.index.levels[0], rich.columns, cube.columns
    return RegularGridInterpolator(
        (np.log(m), np.log(n), np.log(k)),
        _filled(values).transpose(2, 0, 1),
        bounds_error=False,
        fill_value=None,
    )


def _filled(values: np.ndarray) -> np.ndarray:
    """Fill gaps of the grid (shapes too large for the GPU's memory) from the nearest m below."""
    frame = pd.DataFrame(values.reshape(-1, values.shape[-1]))
    return frame.ffill(axis=1).bfill(axis=1).to_numpy().reshape(values.shape)
