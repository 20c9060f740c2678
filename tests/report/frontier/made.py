"""Made tables in the shape of a sweep's: variants x GPUs x rates x seeds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from servesim.report.frontier.details import details, hover
from servesim.report.frontier.points import drawn_points

RATE = "workload.arrivals.rate_rps"
TTFT, OUTPUT = "latency.ttft_s.p99", "throughput.output_tokens_per_s_per_gpu"
INTERACTIVITY, GOODPUT = "latency.interactivity.p50", "goodput.requests_per_s"
ERROR = "does not fit: <weights> & KV\nsecond line"

#: Tells of (variant, GPU, rate, seed) whether a point is one of a kind.
Kind = Callable[[str, str, float, int], bool]


def _never(*_: Any) -> bool:
    return False


def sweep_table(
    variants: Sequence[str] = ("one", "two"),
    gpus: Sequence[str] = ("h100", "l40s"),
    rates: Sequence[float] = (1.0, 2.0, 4.0, 8.0),
    seeds: Collection[int] = (0, 1, 2),
    *,
    fails: Kind = _never,
    saturated: Kind = _never,
    unclean: Kind = _never,
) -> pd.DataFrame:
    """Return a table; failing points have no figures. Without rates, the study has no load."""
    rows = []
    for number, (variant, gpu, rate, seed) in enumerate(product(variants, gpus, rates or (2.0,), seeds)):
        axes = {"variant": variant, "gpu": gpu} | ({RATE: rate} if rates else {})
        command = f"servesim variant={variant} gpu={gpu} {RATE}={rate:g} seed={seed}"
        row = {"point": number, **axes, "seed": seed, "status": "clean", "error": None, "command": command}
        row["hash"] = f"{number:016x}"
        if fails(variant, gpu, rate, seed):
            row |= {"status": "failed", "error": ERROR}
        else:
            if unclean(variant, gpu, rate, seed):
                row["status"] = "not_clean"
            strength = 1.0 + 1.07 * variants.index(variant) + 0.31 * gpus.index(gpu)
            row |= figures(strength, rate, seed, bool(saturated(variant, gpu, rate, seed)))
        rows.append(row)
    return pd.DataFrame(rows)


def figures(strength: float, rate: float, seed: int, saturated: bool) -> dict[str, Any]:
    """Return the figures of one run; a stronger configuration is quicker and costs more."""
    luck = 1 + 0.05 * np.random.default_rng(seed).standard_normal()
    busy = rate / (4 * strength + rate)
    tpot_s, ttft_s = 0.02 * (1 + busy) * luck, 0.1 / strength * (1 + 8 * busy**2) * luck
    return {
        OUTPUT: 300 * busy * luck,
        "throughput.total_tokens_per_s_per_gpu": 1500 * busy * luck,
        INTERACTIVITY: 1 / tpot_s,
        "latency.ttft_s.p50": ttft_s / 2,
        TTFT: ttft_s,
        "latency.tpot_s.p50": tpot_s,
        "latency.tpot_s.p99": 2 * tpot_s,
        "cost.usd_per_million_output_tokens": strength / busy / luck,
        GOODPUT: rate * (1 - busy**3) * luck,
        "goodput.requests_per_s_per_gpu": rate * (1 - busy**3) / 8,
        "goodput.attainment": 1 - busy**3,
        "goodput.met": busy <= 0.5,
        "goodput.target": 0.875,
        "goodput.limits.ttft_s": 0.3,
        "goodput.limits.tpot_s": 0.04,
        "saturated": saturated,
        "scenario.version": "1.2.3",
    }


def points_of(table: pd.DataFrame, load: str | None = RATE) -> pd.DataFrame:
    """Return what is drawn of a table, with the texts on hovering."""
    points = drawn_points(table, load)
    return points.assign(text=hover(details(points, table)))
