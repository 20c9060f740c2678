"""What ``comparison.json`` says: every figure of a comparison as plain values, NaN as null."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from math import isinf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from servesim.files import in_one_go
from servesim.results.summary import plain
from servesim.validate.closed_loop import Simulated
from servesim.validate.compare import Comparison
from servesim.validate.measured import Measured
from servesim.validate.series import Knee
from servesim.validate.tolerance import Verdict

if TYPE_CHECKING:
    import pandas as pd


def of_runs(
    scenario: Mapping[str, Any],
    comparisons: Sequence[Comparison],
    knees: Sequence[Knee],
    verdicts: Sequence[Verdict],
) -> dict[str, Any]:
    """Return what is said of measured runs and their replays; latencies in seconds, errors as shares of 1."""
    return {
        "scenario": {key: value for key, value in scenario.items() if key != "workload"},
        "runs": [_run(each) for each in comparisons],
        "knees": [{**knee._asdict(), "error": knee.error} for knee in knees],
        "tolerances": [_verdict(each) for each in verdicts],
    }


def of_points(
    scenario: Mapping[str, Any], simulated: Simulated, verdicts: Sequence[Verdict]
) -> dict[str, Any]:
    """Return what is said of closed-loop points and their simulations."""
    return {
        "scenario": {key: value for key, value in scenario.items() if key not in ("workload", "cluster")},
        "source": simulated.points.source,
        "notes": list(simulated.points.notes),
        "points": _rows(simulated.table),
        "failed": {str(line): error for line, error in simulated.failed.items()},
        "scores": [
            {**dict(zip(("metric", "statistic", "by", "value"), key, strict=False)), **scores._asdict()}
            for key, scores in _all_scores(simulated)
        ],
        "tolerances": [_verdict(each) for each in verdicts],
    }


def write(said: Mapping[str, Any], path: Path) -> None:
    """Write what is said as JSON, in one go."""
    text = json.dumps(plain(said), indent=2, allow_nan=False)
    with in_one_go(path) as beside:
        beside.write_text(f"{text}\n", encoding="utf-8")


def _run(comparison: Comparison) -> dict[str, Any]:
    summary = comparison.summary
    return {
        "measured": _about(comparison.measured),
        "simulated": {"requests": comparison.simulated.requests, "failed": comparison.simulated.failed},
        "sent": None if summary is None else summary["scenario"]["workload"],
        "figures": _rows(comparison.table()),
        "ks": {metric: distance._asdict() for metric, distance in comparison.ks.items()},
        "per_request": {metric: spread._asdict() for metric, spread in comparison.per_request.items()},
        "by_load": _rows(comparison.by_load()),
    }


def _about(run: Measured) -> dict[str, Any]:
    """Return what is known of a run as a whole; a rate of inf is the word, as ``vllm bench serve`` has it."""
    kept = {field.name: getattr(run, field.name) for field in fields(run)}
    said = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in kept.items()
        if not isinstance(value, np.ndarray) and name not in ("itl_s", "client_queue_s", "stated")
    }
    if run.request_rate is not None and isinf(run.request_rate):
        said["request_rate"] = "inf"
    return {**said, "requests": run.requests, "span_s": run.span_s, "offered_rps": run.offered_rps}


def _all_scores(simulated: Simulated) -> list[tuple[tuple[object, ...], Any]]:
    found = [(key, scores) for key, scores in simulated.scores().items()]
    for name in ("tp", "concurrency"):
        found += [((*key[:2], name, key[2]), scores) for key, scores in simulated.scores(name).items()]
    return found


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {**verdict._asdict(), "met": verdict.met}


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]
