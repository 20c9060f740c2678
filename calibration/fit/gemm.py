"""The fits of dense products: one per format, of the two kinds of library that :class:`Gemm` knows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pandas as pd

from calibration.conf import MULTIPROCESSORS, model_named
from calibration.fit.job import Array, Job, Start
from calibration.fit.rows import CORE, FEWEST_ROWS, Work, columns
from servesim.cost.gpu import Gpu
from servesim.cost.kernels.floor import WEIGHT_BYTES, kernel_floor, peak_flops
from servesim.cost.kernels.gemm import Gemm

#: The models, and tensor parallel sizes, whose layers are scored by themselves.
LLM = ("llama3.1-8b", "llama3.1-70b", "qwen3-32b")
TENSOR_PARALLEL_SIZES = (1, 2, 4, 8)

SHARED = {
    "launch_s": Start(2e-6, 1e-7, 1e-4),
    "bandwidth": Start(0.83, 0.2, 1),
    "input_bandwidth": Start(0.5, 0.02, 20),
    "output_bandwidth": Start(1.1, 0.05, 50),
    "tile_rate": Start(0.85, 0.1, 1.3),
    "half_tile": Start(0.5, 0.05, 1),
    "skinny_tile": Start(0.9, 0.05, 1),
    "wave_quantisation": Start(0.1, 0.01, 1),
    "overlap": Start(3, 1, 20),
}
SEARCHED = {"narrow_tile": Start(0.6, 0.3, 1), "split_depth": Start(3000, 64, 1e5)}
BY_ROWS = {
    "middle_tile": Start(0.8, 0.3, 1),
    "fill_depth": Start(100, 1, 3000),
    "ragged_penalty": Start(0.1, 1e-3, 2),
    "row_s": Start(3e-9, 1e-13, 1e-6),
}


def jobs(gpu: Gpu, table: pd.DataFrame) -> Iterator[Job]:
    """Yield one fit per format, of the two kinds of library that :class:`Gemm` knows."""
    core = table[(table.n >= CORE) & (table.k >= CORE)]
    shapes = pd.MultiIndex.from_tuples(sorted(llm_shapes()))
    for dtype, rows in core.groupby("dtype"):
        if len(rows) < FEWEST_ROWS or dtype not in WEIGHT_BYTES:
            continue
        llm = pd.MultiIndex.from_frame(rows[["n", "k"]]).isin(shapes) & (rows.m <= 8192)
        aligned = rows.m % 4 == 0
        yield Job(
            operation="gemm",
            name=str(dtype),
            rows=rows,
            shape=("m", "n", "k"),
            group=("n", "k"),
            ranges=("m", "n", "k"),
            coefficients=SHARED | (SEARCHED if _searches(str(dtype), str(rows.engine.iloc[0])) else BY_ROWS),
            build=partial(_gemm, str(dtype), MULTIPROCESSORS[gpu.name]),
            predict=lambda form, part: form.seconds(gpu, *columns(part, "m", "n", "k"), ragged=True),
            roofline=lambda part, dtype=str(dtype): floor(gpu, dtype, part),
            excluded=rows.seconds.to_numpy() < floor(gpu, str(dtype), rows),
            subsets={
                "llm_shapes": llm.to_numpy(),
                "m_to_64": rows.m.le(64).to_numpy(),
                "m_65_to_512": rows.m.between(65, 512).to_numpy(),
                "m_from_513": rows.m.ge(513).to_numpy(),
                "m_aligned": aligned.to_numpy(),
            },
        )


def _searches(dtype: str, engine: str) -> bool:
    """Return whether the library searches for its tiles: cuBLAS does, for FP8 in trtllm and torch."""
    return dtype == "bf16" or (dtype == "fp8" and engine in ("trtllm", "torch"))


def _gemm(dtype: str, multiprocessors: int, **coefficients: float) -> Gemm:
    return Gemm(dtype, multiprocessors, **coefficients)


def llm_shapes() -> set[tuple[int, int]]:
    """Return (n, k) of the linear layers of the models above, on one GPU at each tensor parallel size."""
    return {
        (linear.outputs, linear.inputs)
        for name in LLM
        for size in TENSOR_PARALLEL_SIZES
        for linear in model_named(name).linears(size)
    }


def work(dtype: str, rows: pd.DataFrame) -> Work:
    """Return the work of products: their arithmetic, and the weights."""
    m, n, k = columns(rows, "m", "n", "k")
    return Work(2 * m * n * k, n * k * WEIGHT_BYTES[dtype])


def floor(gpu: Gpu, dtype: str, rows: pd.DataFrame) -> Array:
    """Return the datasheet's time of products."""
    flops, hbm_bytes = work(dtype, rows)
    return kernel_floor(gpu, flops, peak_flops(gpu, dtype), hbm_bytes)
