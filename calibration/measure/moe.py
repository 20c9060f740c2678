"""The experts of a mixture: two grouped products and the activation between them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch.nn import functional

from calibration.fit.routing import tokens_per_expert
from calibration.measure.bench import Bench, Prepared
from calibration.measure.case import Case, UnsupportedError
from calibration.measure.elementwise import gated

#: BF16 numbers that make the 16 bytes to which rows of grouped products are aligned.
ALIGNED = 8

Grouped = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def prepare(case: Case, bench: Bench) -> Prepared:
    """Return the experts of one layer on rows that are sorted by expert already.

    torch's grouped product where it has one (from 2.10 on under its public name), or else a loop over
    experts, which no engine would run: ``kernel`` is ``torch_loop`` then, and no profile is fitted to it.
    """
    hidden, inter = case["hidden"], case["inter"] // case["tp"]
    if case["dtype"] != "bf16" or not case["gated"] or case["ep"] != 1:
        raise UnsupportedError("experts: only gated ones in BF16, all on every GPU, are timed")
    if inter % ALIGNED or hidden % ALIGNED:
        raise UnsupportedError(f"experts: sizes must be multiples of {ALIGNED}")
    counts = tokens_per_expert(case["tokens"], case["top_k"], case["experts"], case["distribution"])
    rows = bench.random(case["tokens"] * case["top_k"], hidden)
    weights = [
        (
            bench.random(case["experts"], 2 * inter, hidden).transpose(1, 2),
            bench.random(case["experts"], hidden, inter).transpose(1, 2),
        )
        for _ in range(bench.copies(case))
    ]
    product, kernel = _product(counts.tolist(), bench)
    return Prepared(tuple(partial(experts, product, rows, *each) for each in weights), kernel)


def experts(product: Grouped, rows: torch.Tensor, up: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
    """Return rows [rows, hidden] through their experts' gate and up, the activation, and down."""
    return product(gated(product(rows, up)), down)


def _product(counts: list[int], bench: Bench) -> tuple[Grouped, str]:
    """Return the grouped product of rows [rows, k] and weights [experts, k, n], and its name."""
    grouped = getattr(functional, "grouped_mm", None)
    if grouped is None:
        return partial(_looped, counts), "torch_loop"
    ends = torch.tensor(counts, device=bench.device).cumsum(0).to(torch.int32)
    return partial(grouped, offs=ends), "torch_grouped_mm"


def _looped(counts: list[int], rows: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    parts = zip(rows.split(counts), weights, strict=True)
    return torch.cat([part @ weight for part, weight in parts])
