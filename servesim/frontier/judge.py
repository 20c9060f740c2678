"""Whether a cluster meets its objective under its traffic: the verdict of several seeds together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from servesim.engine.clock import StalledError
from servesim.frontier.candidate import Candidate, Shape
from servesim.frontier.traffic import Trial
from servesim.results.result import Result
from servesim.results.saturation import FEWEST
from servesim.simulation import run

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Verdict:
    """What the seeds of a trial say together, each of the requests in its steady part.

    Attainment and percentiles are of the requests of all seeds in one heap; times are in seconds, NaN where
    there are none. ``worst_seed`` is the lowest attainment of a seed. ``runs`` are the seeds simulated: a
    trial ends early, unmet, when a seed is saturated or stalls, or when more requests have missed than may in
    all seeds; those turned away, timed out or left over have missed. ``weakest_seed`` is the one at fault
    then, else that of the lowest attainment. ``clean`` says whether no request was lost.
    """

    met: bool
    saturated: bool
    clean: bool
    judged: int
    attainment: float
    worst_seed: float
    ttft_p99_s: float
    tpot_p99_s: float
    output_tokens_per_s: float
    runs: int
    weakest_seed: int


def judge(candidate: Candidate, shape: Shape, trial: Trial, factor: float = 1.0) -> Verdict:
    """Try a candidate with so many replicas, requests coming ``factor`` times as densely."""
    target = candidate.scenario.slo.attainment
    parts: list[_Part] = []
    may_miss = (1 - target) * len(trial.seeds) * trial.requests_at(factor)
    for seed in trial.seeds:
        try:
            part = _part(run(candidate.tried(shape, trial, seed, factor)))
        except StalledError:
            part = _STALLED
        parts.append(part)
        may_miss -= part.judged - part.good
        if part.saturated or not part.judged or may_miss < 0:
            break
    return _together(parts, target, trial.seeds)


class _Part(NamedTuple):
    """What one seed contributes."""

    clean: bool
    saturated: bool
    judged: int
    good: int
    ttft_s: Floats
    tpot_s: Floats
    output_tokens: float
    window_s: float


_STALLED = _Part(False, False, 0, 0, np.empty(0), np.empty(0), 0.0, 0.0)


def _part(result: Result) -> _Part:
    """Return what a steady run contributes.

    One of too few requests to tell of saturation counts as saturated. One that is only too short for its
    requests' stay does not: where that many meet limits of a trial of eight stays, nothing piles up.
    """
    summary, requests = result.summary, result.requests
    judged = requests[requests["sent_s"] >= summary["warmup_cut_s"]]
    ttft_s, tpot_s = (judged[name].to_numpy(dtype=float) for name in ("ttft_s", "tpot_s"))
    window_s, asked = summary["window_s"], summary["goodput"]["judged"]
    return _Part(
        clean=summary["accounting"]["clean"],
        saturated=bool(summary["saturated"]) or len(judged) < FEWEST,
        judged=asked,
        good=round((summary["goodput"]["attainment"] or 0.0) * asked),
        ttft_s=ttft_s[~np.isnan(ttft_s)],
        tpot_s=tpot_s[~np.isnan(tpot_s)],
        output_tokens=(summary["throughput"]["output_tokens_per_s"] or 0.0) * window_s,
        window_s=window_s,
    )


def _together(parts: Sequence[_Part], target: float, seeds: Sequence[int]) -> Verdict:
    judged, good = sum(part.judged for part in parts), sum(part.good for part in parts)
    saturated, stalled = (
        any(each) for each in zip(*((p.saturated, not p.judged) for p in parts), strict=True)
    )
    attainment = good / judged if judged else nan
    window_s = sum(part.window_s for part in parts)
    shares = [part.good / part.judged if part.judged else nan for part in parts]
    weakest = len(parts) - 1 if saturated or stalled else int(np.argmin(shares))
    return Verdict(
        met=len(parts) == len(seeds) and not (saturated or stalled) and attainment >= target,
        saturated=saturated,
        clean=all(part.clean for part in parts),
        judged=judged,
        attainment=attainment,
        worst_seed=min(shares),
        ttft_p99_s=_p99(np.concatenate([part.ttft_s for part in parts])),
        tpot_p99_s=_p99(np.concatenate([part.tpot_s for part in parts])),
        output_tokens_per_s=sum(part.output_tokens for part in parts) / window_s if window_s else nan,
        runs=len(parts),
        weakest_seed=seeds[weakest],
    )


def _p99(sample: Floats) -> float:
    return float(np.percentile(sample, 99)) if len(sample) else nan
