"""What is drawn of a sweep: one row per configuration and load, its figures averaged over the seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from servesim.frontier.replications import over_seeds, settings
from servesim.report.metrics import SHOWN, metric

#: Keys that say how much a cluster is asked to do; the last axis of a study is its load if it is one of them.
LOADS = {
    "workload.arrivals.rate_rps": ("Rate", "requests/s"),
    "workload.arrivals.concurrency": ("Concurrency", "users"),
    "workload.rate_scale": ("Load", "times the trace's rate"),
}

#: How well-known keys are called in labels.
_FIELD = {"tensor_parallel_size": "TP"}

#: What keys of the traffic start with.
_TRAFFIC = "workload"

CLEAN, SATURATED, UNSETTLED = "clean", "saturated", "unsettled"
UNCLEAN, FAILED = "not clean", "failed"


def load_of(table: pd.DataFrame, declared: str | None = None) -> str | None:
    """Return the column of the load: the declared one, else the last axis if it is a known load."""
    last = settings(table)[-1]
    return declared or (last if last in LOADS else None)


def drawn_points(table: pd.DataFrame, load: str | None, metrics: Sequence[str] = ()) -> pd.DataFrame:
    """Return one row per configuration and load, by configuration, then by load.

    Beside the axes, and ``m``, ``m.low`` and ``m.high`` (mean and 95% interval over the seeds; NaN below two)
    of every metric of ``SHOWN`` and ``metrics``:

    - ``config``: the number of the configuration, in the order of the table; ``label``: what sets it apart;
    - ``traffic``: what it is asked to serve, of all that the study asks; empty where that is one thing;
    - ``load``: as a number, NaN in a study without;
    - ``seeds``, ``failed``, ``unclean``, ``met``: how many were run, have no figures, lost requests, and met
      the SLO; ``saturated``: the share of those with figures that is;
    - ``pooled``: the share of the requests of all seeds together that met the SLO; ``meets``: whether that is
      enough; ``untold``: whether nobody can tell;
    - ``state``: ``failed`` when no seed has figures, ``not clean`` when some have none, or lost requests and
      do not meet the SLO for all that, ``saturated`` when half of them or more are, ``unsettled`` when half
      of them or more have no steady part, else ``clean``;
    - ``hole``: whether any seed failed, so that no line may lead through the point;
    - ``commands``: those of its seeds.
    """
    keys = settings(table)
    columns = dict.fromkeys([*(each.column for each in SHOWN), *metrics])
    known = table.assign(**{name: np.nan for name in columns if name not in table})
    points = _within_a_whole(over_seeds(known, list(columns)), list(columns))
    points = points.merge(_counts(known, keys), on=keys, how="left", validate="one_to_one")
    points["error"] = points.error.fillna("")
    points["config"] = points.groupby([key for key in keys if key != load], sort=False, dropna=False).ngroup()
    points["load"] = points[load].astype(float) if load else np.nan
    points["label"] = _labels(points, keys, load)
    points["traffic"] = _labels(points, [key for key in keys if key.startswith(_TRAFFIC)], load, "")
    points["hole"] = points.failed > 0
    points["state"] = np.select(
        [
            points.failed == points.seeds,
            (points.failed > 0) | ((points.unclean > 0) & ~points.meets.astype(bool)),
            points.saturated >= 0.5,
            ~points.settled.astype(bool),
        ],
        [FAILED, UNCLEAN, SATURATED, UNSETTLED],
        CLEAN,
    )
    return points.sort_values(["config", "load"], kind="stable", ignore_index=True)


def _within_a_whole(points: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Return points whose intervals of shares end at 0 and at all, where Student's may go on."""
    ends = [f"{column}{end}" for column in columns if metric(column).unit == "%" for end in (".low", ".high")]
    return points.assign(**{end: points[end].clip(0.0, 1.0) for end in ends})


def _counts(table: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Return per point what is counted or listed over its seeds."""
    met = table["goodput.met"] if "goodput.met" in table else pd.Series(np.nan, table.index)
    marked = table.assign(_unclean=table.status == "not_clean", _met=met.eq(True))
    groups = marked.groupby(list(keys), sort=False, dropna=False)
    return groups.agg(
        unclean=("_unclean", "sum"),
        met=("_met", "sum"),
        commands=("command", list),
        error=("error", "first"),
    ).reset_index()


def short_names(keys: Sequence[str]) -> dict[str, str]:
    """Return keys by as much of their end as tells them apart."""
    for parts in range(1, 9):
        names = [".".join(key.replace("/", ".").split(".")[-parts:]) for key in keys]
        if len(set(names)) == len(names):
            return dict(zip(keys, names, strict=True))
    return {key: key for key in keys}


def written(value: Any) -> str:
    """Return the value of an axis as it is typed."""
    if isinstance(value, (bool, np.bool_)):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, (float, np.floating)) else str(value)


def _labels(
    points: pd.DataFrame, keys: Sequence[str], load: str | None, alone: str = "all points"
) -> list[str]:
    """Return of each point what sets it apart from the others by these keys; ``alone`` where nothing does."""
    apart = [key for key in keys if key != load and points[key].nunique(dropna=False) > 1]
    names = short_names(apart)
    columns = [[_said(key, names[key], value) for value in points[key]] for key in apart]
    rows = zip(*columns, strict=True) if columns else ([] for _ in range(len(points)))
    return [", ".join(text for text in row if text) or alone for row in rows]


def _said(key: str, name: str, value: Any) -> str:
    """Return the value of an axis, with its name unless the value speaks for itself."""
    if key == "variant" or "." not in key:
        return written(value)
    return f"{_FIELD.get(name, name)}={written(value)}"
