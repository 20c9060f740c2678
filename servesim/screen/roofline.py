"""The roofline as a drawing of characters, with the operations of a step on it."""

from __future__ import annotations

from math import ceil, floor, log10

from servesim.cluster.deployment import Deployment
from servesim.screen.step import Step, letters

WIDTH, HEIGHT = 64, 14
MARGIN = 9  # columns left of the drawing, for the labels of the axis


def roofline_lines(pool: Deployment, weights_dtype: str, step: Step) -> list[str]:
    """Return the lines of a drawing of FLOP/s over FLOPs per byte, both per GPU and logarithmic.

    The roof is the lesser of the peak (of the weights' format) and bandwidth x intensity. An operation is
    the letter of its row in the table, a * where several meet; those without FLOPs or bytes are left out.
    """
    gpu = pool.gpu
    peak, rate = gpu.peak_flops(weights_dtype), gpu.hbm_bytes_per_s
    operations = pool.step_time.breakdown(step.sequences, step.context, step.chunks)
    points = [
        (one.flops / one.bytes, one.flops / one.seconds / pool.tensor_parallel_size, letter)
        for one, letter in zip(operations, letters(operations), strict=True)
        if one.flops and one.bytes
    ]
    left = floor(min(log10(intensity) for intensity, _, _ in points))
    right = ceil(max(log10(2 * peak / rate), *(log10(intensity) for intensity, _, _ in points)))
    top = log10(peak)
    bottom = floor(min(log10(min(peak, rate * 10**left)), *(log10(reached) for _, reached, _ in points)))
    rows = [[" "] * WIDTH for _ in range(HEIGHT)]

    def put(intensity: float, reached: float, mark: str) -> None:
        column = round((log10(intensity) - left) / (right - left) * (WIDTH - 1))
        row = round((top - log10(reached)) / (top - bottom) * (HEIGHT - 1))
        taken = rows[row][column]
        rows[row][column] = mark if taken in " ." else "*"

    for column in range(WIDTH):
        intensity = 10 ** (left + (right - left) * column / (WIDTH - 1))
        put(intensity, min(peak, rate * intensity), ".")
    for point in points:
        put(*point)
    labels = {0: f"{peak:.2g}", HEIGHT - 1: f"1e{bottom}"}
    lines = [f"{labels.get(index, ''):>{MARGIN - 2}} |{''.join(row)}" for index, row in enumerate(rows)]
    margin = " " * MARGIN
    axis = f"1e{left}".ljust(WIDTH - 3) + f"1e{right}"
    several = "; * is several operations" if any("*" in row for row in rows) else ""
    return [
        "FLOP/s per GPU",
        *lines,
        f"{margin[1:]}+{'-' * (WIDTH - 1)}",
        f"{margin}{axis}",
        f"{margin}FLOPs per byte of weights and KV{several}",
    ]
