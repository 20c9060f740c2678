"""Which shapes are timed, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from calibration.measure import predicted, shapes
from calibration.measure.case import Case
from calibration.measure.protocol import MOST_CALLS, REPLAYS, TARGET_S
from calibration.sources.tidy import SourceError

#: Shapes of each operation that ``--budget 1`` times, of those in :mod:`.shapes`; all where there are fewer.
SHARES = {
    "gemm": 700,
    "decode_attention": 400,
    "prefill_attention": 240,
    "moe": 200,
    "norm": 40,
    "rope": 60,
    "activation": 60,
    "quantise": 300,
    "copy": 30,
    "launch": 8,
    "all_reduce": 90,
    "all_to_all": 90,
}
COLLECTIVES = ("all_reduce", "all_to_all")

#: What a case costs before its first call: random data (filled at these rates on the GPU and on the host) and
#: the capture of its calls.
SET_UP_S, FILL_BYTES_PER_S, HOST_FILL_BYTES_PER_S = 0.12, 3e11, 5e8

#: Once in a run: torch and CUDA start, elementwise kernels are compiled; per number of GPUs: processes start.
START_S, GROUP_START_S = 60.0, 20.0

#: The largest budget: by then all shapes are timed, and a run would take the better part of a day.
MOST_BUDGET = 100.0

#: How long a run of budget 1 may last, and how much of that is for what does not depend on the budget.
LIMIT_S, STARTS_S = 600.0, START_S + len(shapes.GPUS) * GROUP_START_S

#: How much slower than predicted kernels may be: torch's where vLLM's were predicted, or a power limit.
SLOWER = 1.5

#: The L2 cache of an H100 (bytes), from the H100 architecture white paper: 50 MB.
CACHE_BYTES = 50 << 20


def plan(device: str, budget: float = 1.0) -> list[Case]:
    """Return the cases of a run in order.

    A smaller budget gives a subset, a larger one more of the same grids. The shapes of an operation come in
    an order of which every beginning spans all of its range, and operations take turns: a run that is cut
    off leaves a thinner table of each. Collectives, which start processes of their own, come in one piece
    after the first quarter.

    Raises:
        SourceError: where the budget is not positive, or beyond a day.
    """
    if not 0 < budget <= MOST_BUDGET:
        raise SourceError(f"--budget {budget:g}: must be above 0 and at most {MOST_BUDGET:g}")
    grids = shapes.on_cpu() if device == "cpu" else shapes.on_gpu()
    chosen = {
        name: _spread(cases)[: max(round(min(SHARES[name], len(cases)) * budget), 1)]
        for name, cases in grids.items()
    }
    single = _in_turns([cases for name, cases in chosen.items() if name not in COLLECTIVES])
    together = sorted((case for name in COLLECTIVES for case in chosen[name]), key=lambda case: case["gpus"])
    quarter = len(single) // 4
    return [*single[:quarter], *together, *single[quarter:]]


def blocks(cases: Sequence[Case]) -> list[list[Case]]:
    """Return cases in runs of the same number of GPUs, which one group of processes times."""
    return [list(block) for _, block in groupby(cases, key=gpus_of)]


def gpus_of(case: Case) -> int:
    """Return how many GPUs a case takes."""
    return int(case["gpus"]) if case.operation in COLLECTIVES else 1


def case_seconds(case: Case) -> float:
    """Return how long a case occupies an H100, set-up, warm-up and repetitions included, at SLOWER."""
    one = SLOWER * predicted.seconds(case)
    rotated = predicted.rotated_bytes(case)
    buffers = predicted.copies(rotated, CACHE_BYTES, MOST_CALLS)
    replay = one * (buffers if rotated else MOST_CALLS)
    least, most = REPLAYS
    replays = 2 + min(max(TARGET_S / replay, least), most)
    fill = HOST_FILL_BYTES_PER_S if case.operation == "copy" else FILL_BYTES_PER_S
    return SET_UP_S + (buffers * rotated + predicted.fixed_bytes(case)) / fill + replays * replay


def limit_seconds(budget: float) -> float:
    """Return how long a run may last: LIMIT_S at a budget of 1, the time for its cases in proportion."""
    return STARTS_S + budget * (LIMIT_S - STARTS_S)


def run_seconds(cases: Sequence[Case]) -> float:
    """Return how long a run of these cases lasts on an H100 node."""
    groups = {gpus_of(case) for case in cases} - {1}
    return START_S + GROUP_START_S * len(groups) + sum(map(case_seconds, cases))


def case_bytes(case: Case) -> int:
    """Return the GPU memory that a case needs."""
    rotated = predicted.rotated_bytes(case)
    buffers = predicted.copies(rotated, CACHE_BYTES, MOST_CALLS)
    return buffers * rotated + predicted.fixed_bytes(case) + 4 * CACHE_BYTES


def _in_turns(lists: Sequence[Sequence[Case]]) -> list[Case]:
    """Return all cases such that every list is used up at the same pace, its order kept."""
    paced = [((at + 0.5) / len(cases), case) for cases in lists for at, case in enumerate(cases)]
    return [case for _, case in sorted(paced, key=lambda pair: pair[0])]


def _spread(cases: Sequence[Case]) -> list[Case]:
    """Return cases such that each is as far as can be from those before it (Gonzalez, TCS 38, 1985).

    The distance is Euclidean over logarithms of sizes, each scaled to its range; different words are as far
    apart as the ends of a range.
    """
    points = _points(cases)
    order, nearest = [0], np.full(len(cases), np.inf)
    while len(order) < len(cases):
        nearest = np.minimum(nearest, ((points - points[order[-1]]) ** 2).sum(axis=1))
        nearest[order[-1]] = -1.0
        order.append(int(nearest.argmax()))
    return [cases[at] for at in order]


def _points(cases: Sequence[Case]) -> np.ndarray:
    """Return coordinates of cases: one per size, one per word that occurs."""
    columns = []
    for values in zip(*(case.values for case in cases), strict=True):
        if isinstance(values[0], str):
            columns += [
                np.array([value == word for value in values]) / np.sqrt(2) for word in sorted(set(values))
            ]
        else:
            logs = np.log1p(np.array(values, dtype=float))
            columns.append((logs - logs.min()) / max(np.ptp(logs), 1e-9))
    return np.column_stack(columns)
